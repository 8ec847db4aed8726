"""What is told of slopes that a loss is made of: real trainings, with what looks alike."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from trainings import fingerprint

import traindbg as td
from traindbg.hooks import torch_recording

STEPS = 12
FAULTS = ("equation", "penalty", "second_call", "kept_as_attribute")


def slope_of(value: torch.Tensor, place: torch.Tensor, **options) -> torch.Tensor:
    return torch.autograd.grad(value.sum(), place, **options)[0]


def train(kind: str, watch=None, steps: int = STEPS) -> tuple[nn.Module, list[float]]:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    actor = nn.Linear(2, 2)
    actor_optimizer = torch.optim.SGD(actor.parameters(), lr=0.01)
    if watch is not None:
        watch(model)
    losses = []
    for step in range(steps):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(16, 2, generator=generator)
        y = x.prod(1, keepdim=True)
        optimizer.zero_grad()
        points = x.clone().requires_grad_()
        fitted = nn.functional.mse_loss(model(x), y)
        if kind == "equation":
            u = model(points)
            loss = (slope_of(u, points, retain_graph=True)[:, :1] - u).pow(2).mean() + fitted
        elif kind == "with_graph":
            u = model(points)
            loss = (slope_of(u, points, create_graph=True)[:, :1] - u).pow(2).mean() + fitted
        elif kind == "penalty":
            slope = slope_of(model(points), points)
            loss = fitted + 0.1 * (slope.norm(dim=1) - 1).square().mean()
        elif kind == "second_call":
            slope = slope_of(model(points), points)
            loss = fitted + nn.functional.mse_loss(slope[:, :1], model(x))
        elif kind == "kept_as_attribute":
            model.slope = slope_of(model(points), points)
            loss = fitted + 0.1 * model.slope.square().sum(1).mean()
        elif kind == "adversarial":
            moved = x + 0.1 * slope_of(fitted_at(model, points, y), points).sign()
            loss = fitted + nn.functional.mse_loss(model(moved), y) + 0.1 * moved.square().mean()
        elif kind == "weight_of_a_loss":
            extra = model(x).square().mean()
            last = model[2].weight
            one = slope_of(fitted, last, retain_graph=True).norm()
            other = slope_of(extra, last, retain_graph=True).norm()
            loss = fitted + one / (other + 1e-6) * 0.01 * extra
        elif kind == "policy":
            # The actor follows the critic's slope; the critic is trained by its own loss.
            action = actor(x).detach().requires_grad_()
            slope = slope_of(model(action), action)
            actor_optimizer.zero_grad()
            (-(slope * actor(x)).sum(1).mean()).backward()
            actor_optimizer.step()
            loss = fitted
        elif kind == "looked_at":
            slope_of(model(points), points).norm().item()
            loss = fitted
        else:
            loss = fitted
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


def fitted_at(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(model(x), y)


def told(kind: str, run_dir) -> list[float]:
    train(kind, lambda model: td.watch(model, run_dir=run_dir, supervise=False))
    torch_recording.current.close()
    assert torch._C._len_torch_dispatch_stack() == 0
    run = td.Run(run_dir)
    if "loop/slopes_without_graph" not in run.names():
        return []
    return run.scalars("loop/slopes_without_graph").values.tolist()


@pytest.mark.parametrize("kind", FAULTS)
def test_a_loss_is_made_of_a_slope_without_a_graph(kind, run_dir):
    assert told(kind, run_dir) == [1, 1, 1]
    lines = {each["what"]: each for each in td.Run(run_dir).worker_meta()["sources"]}
    assert lines["slope"]["function"] == "slope_of"
    assert lines["slope"]["file"].endswith("test_torch_slopes.py")


@pytest.mark.parametrize(
    "kind",
    ["none", "with_graph", "adversarial", "weight_of_a_loss", "policy", "looked_at"],
)
def test_what_looks_alike_is_not_told(kind, run_dir):
    assert 1 not in told(kind, run_dir)


@pytest.mark.parametrize("kind", [*FAULTS, "with_graph", "adversarial", "policy"])
def test_results_are_the_same_bits(kind, run_dir):
    alone = fingerprint(*train(kind))
    watched = train(kind, lambda model: td.watch(model, run_dir=run_dir, supervise=False))
    torch_recording.current.close()
    assert fingerprint(*watched) == alone


def test_a_mode_of_the_trainings_own_is_left_alone(run_dir):
    class Counting(torch.utils._python_dispatch.TorchDispatchMode):
        calls = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            Counting.calls += 1
            return func(*args, **(kwargs or {}))

    def counted(watch=None) -> int:
        Counting.calls = 0
        with Counting():
            train("equation", watch, steps=4)
        return Counting.calls

    alone = counted()
    model_of_it = counted(lambda model: td.watch(model, run_dir=run_dir, supervise=False, rules=[]))
    torch_recording.current.close()
    assert model_of_it >= alone
    assert torch._C._len_torch_dispatch_stack() == 0
    run = td.Run(run_dir)
    assert "loop/slopes_without_graph" not in run.names()


def test_nothing_is_left_after_a_training_that_breaks_off(run_dir):
    grad = torch.autograd.grad
    code = grad.__code__

    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    td.watch(model, run_dir=run_dir, supervise=False)

    def go_on() -> None:
        for step in range(5):
            points = torch.randn(8, 2).requires_grad_()
            slope = slope_of(model(points), points)
            if step == 1:
                assert torch._C._len_torch_dispatch_stack() == 1
                raise ValueError("no more data")
            (slope.square().mean() + model(points).mean()).backward()
            optimizer.step()

    with pytest.raises(ValueError, match="no more data"):
        go_on()
    torch_recording.current.close()
    assert torch._C._len_torch_dispatch_stack() == 0
    assert torch.autograd.grad is grad
    assert grad.__code__ is code
