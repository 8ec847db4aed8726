"""What is told of numbers in a loss that were read from what has a graph, and what looks alike."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings

FACT = "loop/number_added"
STEPS = 12
FAULTS = (
    "as_it_is",
    "weighed",
    "before_the_tensor",
    "in_place",
    "taken_of_a_detached_one",
    "float",
    "of_a_slope",
    "kept_in_a_list",
)
QUIET = (
    "none",
    "with_a_graph",
    "only_logged",
    "a_constant",
    "detached",
    "a_weight",
    "a_divisor",
    "subtracted",
    "of_the_loss_itself",
    "of_the_last_step",
    "of_an_own_pass",
    "of_data",
    "a_baseline",
)


def equation(model, points):
    u = model(points)
    (slope,) = torch.autograd.grad(u.sum(), points, create_graph=True)
    return (slope[:, :1] + u).square().mean()


def train(kind: str, run_dir=None) -> list:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if run_dir is not None:
        td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"])
    losses, last = [], 1.0
    for _ in range(STEPS):
        x = torch.randn(16, 6)
        optimizer.zero_grad()
        out = model(x)
        fit = (out - x[:, :4]).square().mean()
        rough = (out[:, 1:] - out[:, :-1]).abs().mean()
        if kind == "as_it_is":
            loss = 3 * fit + rough.item()
        elif kind == "weighed":
            loss = fit + 0.1 * rough.item()
        elif kind == "before_the_tensor":
            loss = (rough.item() + fit) / 2
        elif kind == "in_place":
            loss = fit * 1
            loss += rough.item()
        elif kind == "taken_of_a_detached_one":
            loss = fit + rough.detach().item()
        elif kind == "float":
            loss = float(rough) + fit
        elif kind == "of_a_slope":
            loss = fit + equation(model, x.clone().requires_grad_()).item()
        elif kind == "kept_in_a_list":
            loss = sum([fit, rough.item()])
        elif kind == "with_a_graph":
            loss = 0 + fit + rough
            losses.append(rough.item())
        elif kind == "only_logged":
            losses.append(rough.item())
            loss = fit + 0.5
        elif kind == "a_constant":
            loss = fit + 0.918938
        elif kind == "detached":
            loss = fit + rough.detach()
        elif kind == "a_weight":
            loss = 1 + rough.item() * fit
        elif kind == "a_divisor":
            loss = 1 + fit / (1 + rough.item())
        elif kind == "subtracted":
            loss = fit - rough.item()
        elif kind == "of_the_loss_itself":
            loss = 0.1 * fit + 0.9 * fit.item()  # the value stays, its gradient is smaller
        elif kind == "of_the_last_step":
            loss = fit + last
            last = rough.item()
        elif kind == "of_an_own_pass":
            loss = fit + rough.item()
            loss.backward(retain_graph=True)
            loss = rough
        elif kind == "of_data":
            loss = fit + x.square().mean().item()
        elif kind == "a_baseline":
            last = 0.9 * last + 0.1 * rough.item()
            loss = fit + last
        else:
            loss = fit
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if run_dir is not None:
        recordings.current.close()
    return fingerprint(model, losses)


def told(kind: str, run_dir) -> list[float]:
    train(kind, run_dir)
    assert torch._C._len_torch_dispatch_stack() == 0
    run = td.Run(run_dir)
    return run.scalars(FACT).values.tolist() if FACT in run.names() else []


@pytest.mark.parametrize("kind", FAULTS)
def test_a_number_that_was_read_is_told(kind, run_dir):
    first, *others = told(kind, run_dir)
    assert first == 0  # there is nothing to compare with
    assert len(others) == 5
    assert min(others) > 0
    lines = {each["what"]: each for each in td.Run(run_dir).worker_meta()["sources"]}
    assert lines["number_read"]["file"].endswith("test_torch_added_numbers.py")
    assert lines["number_read"]["function"] == "train"


@pytest.mark.parametrize("kind", QUIET)
def test_what_looks_alike_is_not_told(kind, run_dir):
    assert set(told(kind, run_dir)) <= {0}


@pytest.mark.parametrize("kind", [*FAULTS, "with_a_graph", "of_an_own_pass", "detached"])
def test_results_are_the_same_bits(kind, run_dir):
    assert train(kind, run_dir) == train(kind)


def test_of_a_frozen_model_nothing_is_told(run_dir):
    torch.manual_seed(0)
    critic = nn.Linear(4, 1).requires_grad_(False)
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    td.watch(nn.ModuleList([model, critic]), optimizer, run_dir=run_dir, supervise=False)
    for _ in range(STEPS):
        x = torch.randn(16, 6)
        points = x[:, :4].clone().requires_grad_()
        loss = F.mse_loss(model(x), x[:, :4]) + critic(points).square().mean().item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    recordings.current.close()
    assert FACT not in td.Run(run_dir).names()


def test_a_step_whose_forward_pass_raises_is_not_followed_any_longer(run_dir):
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    fails = False

    def fail(*_):
        if fails:
            raise ValueError("a bad batch")

    model[2].register_forward_pre_hook(fail)
    was_followed = []
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for number in range(STEPS):
            fails = number == 3
            try:
                out = model(torch.randn(16, 6))
            except ValueError:
                was_followed.append(torch._C._len_torch_dispatch_stack() > 0)
                optimizer.step()  # by the gradients that are there
                assert torch._C._len_torch_dispatch_stack() == 0
                continue
            optimizer.zero_grad()
            (out.square().mean() + out.abs().mean().item()).backward()
            optimizer.step()
            assert torch._C._len_torch_dispatch_stack() == 0
    assert was_followed == [True]
