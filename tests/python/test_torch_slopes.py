"""What is told of slopes that a loss is made of: real trainings, with what looks alike."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings

STEPS = 12
FAULTS = ("equation", "penalty", "second_call", "kept_as_attribute", "written_to_a_log")
CONSTANTS = ("weights", "shares", "mask", "weights_of_a_function", "detached", "view_of_a_detached")


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
        elif kind == "written_to_a_log":
            slope = slope_of(model(points), points)
            losses.append(slope.detach().norm().item())
            loss = fitted + 0.1 * (slope.norm(dim=1) - 1).square().mean()
        elif kind == "weights":
            weights = 1 / (1 + slope_of(model(points), points).norm(dim=1, keepdim=True))
            loss = (weights * (model(x) - y).square()).mean()
        elif kind == "shares":
            steep = slope_of(model(points), points).norm(dim=1)
            loss = steep @ (model(x) - y).square().squeeze(1) / steep.sum()
        elif kind == "mask":
            slope = slope_of(model(points), points)[:, :1]
            error = (model(x) - y).square()
            loss = fitted + error[slope.abs() > slope.abs().mean()].sum() / 16
            loss = loss + (slope.sign() - model(x)).square().mean()
        elif kind == "weights_of_a_function":
            weights = slope_of(model(points), points)[:, :1].abs()
            entropy = nn.functional.binary_cross_entropy_with_logits
            loss = entropy(model(x), (y > 0).float(), weight=weights)
        elif kind == "detached":
            slope = slope_of(model(points), points).detach()
            loss = fitted + nn.functional.mse_loss(model(x), slope[:, :1])
        elif kind == "view_of_a_detached":
            target = slope_of(model(points), points).data.t()[0].unsqueeze(1)
            loss = fitted + nn.functional.mse_loss(model(x), target)
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
    recordings.current.close()
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
    ["none", "with_graph", "adversarial", "weight_of_a_loss", "policy", "looked_at", *CONSTANTS],
)
def test_what_looks_alike_is_not_told(kind, run_dir):
    assert 1 not in told(kind, run_dir)


@pytest.mark.parametrize("kind", [*FAULTS, "with_graph", "adversarial", "policy"])
def test_results_are_the_same_bits(kind, run_dir):
    alone = fingerprint(*train(kind))
    watched = train(kind, lambda model: td.watch(model, run_dir=run_dir, supervise=False))
    recordings.current.close()
    assert fingerprint(*watched) == alone


def test_a_mode_of_the_trainings_own_is_left_alone(run_dir):
    class Listing(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            heard.append(func)
            return func(*args, **(kwargs or {}))

    heard: list[object] = []
    with Listing():
        train("equation", steps=4)
    alone, heard = heard, []
    with Listing():
        train(
            "equation",
            lambda model: td.watch(
                model, run_dir=run_dir, supervise=False, rules=["detached_graph"]
            ),
            steps=4,
        )
    recordings.current.close()
    rest = iter(heard)
    assert all(each in rest for each in alone)  # in its order; we read the loss between
    assert torch._C._len_torch_dispatch_stack() == 0
    names = td.Run(run_dir).names()
    assert "loop/backward_passes" in names
    assert "loop/slopes_without_graph" not in names


def looks_at_slopes(model: nn.Module, steps: int, before_backward=lambda step: None) -> None:
    """A training that takes slopes and does nothing with them."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        points = torch.randn(8, 2).requires_grad_()
        output = model(points)
        slope_of(output, points, retain_graph=True)
        before_backward(step)
        optimizer.zero_grad()
        output.square().mean().backward()
        optimizer.step()


def test_no_mode_is_on_in_a_backward_pass_and_in_a_step(run_dir):
    depths = {"slope": set(), "gradient": set(), "step": set()}

    def note(moment: str) -> None:
        depths[moment].add(torch._C._len_torch_dispatch_stack())

    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    td.watch(model, run_dir=run_dir, supervise=False)
    model[0].weight.register_hook(lambda gradient: note("gradient"))
    handle = register_optimizer_step_pre_hook(lambda *_: note("step"))
    looks_at_slopes(model, 6, lambda step: note("slope"))
    handle.remove()
    assert depths["slope"] == {0, 1}  # and it was followed
    assert depths["gradient"] == depths["step"] == {0}


def test_no_mode_is_on_while_another_slope_is_taken(run_dir):
    depths = set()
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    td.watch(model, run_dir=run_dir, supervise=False)

    def take_another(step: int) -> None:
        points = torch.randn(8, 2).requires_grad_()
        output = model(points)
        output.register_hook(lambda gradient: depths.add(torch._C._len_torch_dispatch_stack()))
        slope_of(output, points)

    looks_at_slopes(model, 4, take_another)
    assert depths == {0}


def test_what_is_followed_is_in_the_account(run_dir):
    model = nn.Linear(2, 1)
    td.watch(model, run_dir=run_dir, supervise=False)
    hot = recordings.current.hot

    def cost_of_an_operation(step: int) -> None:
        value = torch.ones(3)
        before = hot.nanos
        value.add(1)
        costs.append(hot.nanos - before)

    costs: list[int] = []
    looks_at_slopes(model, 4, cost_of_an_operation)
    assert all(cost > 0 for cost in costs[:3])
    assert costs[3] == 0  # no more steps are followed


def test_slopes_in_another_thread_are_not_followed(run_dir):
    model = nn.Linear(2, 1)
    td.watch(model, run_dir=run_dir, supervise=False)
    depths = set()

    def train_in_thread() -> None:
        looks_at_slopes(model, 3, lambda step: depths.add(torch._C._len_torch_dispatch_stack()))

    thread = threading.Thread(target=train_in_thread)
    thread.start()
    thread.join()
    assert depths == {0}


def test_another_thread_may_close_the_recording(run_dir):
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    td.watch(model, run_dir=run_dir, supervise=False)
    depths = []

    def close(step: int) -> None:
        if step == 1:
            thread = threading.Thread(target=recordings.current.close)
            thread.start()
            thread.join()
        depths.append(torch._C._len_torch_dispatch_stack())

    looks_at_slopes(model, 4, close)
    assert depths == [1, 1, 0, 0]  # the next call of a module has taken it off
    assert recordings.current is None
    assert not torch.nn.modules.module._global_forward_pre_hooks


EXITS = """
import os, sys, threading
import torch
from torch import nn
import traindbg as td

def train():
    model = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
    td.watch(model, run_dir=sys.argv[2], supervise=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        points = torch.randn(8, 2).requires_grad_()
        output = model(points)
        torch.autograd.grad(output.sum(), points, retain_graph=True)
        if step == 2 and sys.argv[1] == "fork":
            child = os.fork()
            if child == 0:
                os._exit(torch._C._len_torch_dispatch_stack())
            print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        if step == 2 and sys.argv[1] in ("closed", "closed_in_thread"):
            from traindbg.hooks.torch.recording import recording as recordings
            closing = threading.Thread(target=recordings.current.close)
            closing.start()
            closing.join()
            if sys.argv[1] == "closed":
                sys.exit(7)
        output.square().mean().backward()
        optimizer.step()
    points = torch.randn(8, 2).requires_grad_()
    torch.autograd.grad(model(points).sum(), points)

if sys.argv[1].endswith("in_thread"):
    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
else:
    train()
sys.exit(7)
"""


@pytest.mark.parametrize("how", ["fork", "closed", "done_in_thread", "closed_in_thread"])
def test_the_exit_code_is_the_trainings(how, run_dir, python):
    done = python(EXITS, how, str(run_dir))
    assert done.returncode == 7, done.stderr
    assert done.stdout == ("child 0\n" if how == "fork" else "")


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
    recordings.current.close()
    assert torch._C._len_torch_dispatch_stack() == 0
    assert torch.autograd.grad is grad
    assert grad.__code__ is code
