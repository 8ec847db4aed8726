"""Which clipping is told to be in vain: that of no gradients, before the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn

import traindbg as td

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def told(run_dir: Path) -> set[float]:
    run = td.Run(run_dir)
    name = "loop/clipped_in_vain"
    return set(run[name].series("value")[1].tolist()) if name in run else set()


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ("clear clip back step", {1.0}),
        ("zero clip back step", {1.0}),
        ("back step clear clip", {1.0}),
        ("clear clip hand back step", {1.0}),
        # The gradients that are clipped are those of the step before.
        ("clip clear back step", {0.0, 1.0}),
        ("clear back step clip", {0.0, 1.0}),
        ("clear back clip step", {0.0}),
        ("clear clip back clip step", {0.0}),
        ("clear back clip back clip step", {0.0}),
        ("clear back step", set()),
        # Made by autograd.grad or by hand, and clipped in time: the pass after it is of another.
        ("clear grad clip step", {0.0}),
        ("clear grad clip other step", {0.0}),
        ("clear hand clip step", {0.0}),
        ("clear hand clip other step", {0.0}),
        ("clear clip hand clip other step", {0.0}),
        ("clear clip other step", set()),
    ],
)
def test_orders(tmp_path: Path, order: str, found: set[float]) -> None:
    torch.manual_seed(0)
    model, other = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    parameters = list(model.parameters())

    def loss(net: nn.Module) -> torch.Tensor:
        out: torch.Tensor = net(torch.randn(8, 4))
        return out.square().mean()

    def by_grad() -> None:
        made = torch.autograd.grad(loss(model), parameters)
        for parameter, gradient in zip(parameters, made, strict=True):
            parameter.grad = gradient

    def by_hand() -> None:
        for parameter in parameters:
            parameter.grad = torch.ones_like(parameter)

    moves: dict[str, Callable[[], object]] = {
        "grad": by_grad,
        "hand": by_hand,
        "other": lambda: loss(other).backward(),
        "zero": lambda: optimizer.zero_grad(set_to_none=False),
        "clear": optimizer.zero_grad,
        "clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.5),
        "back": lambda: loss(model).backward(),
        "step": optimizer.step,
    }
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for _ in range(8):
            for move in order.split():
                moves[move]()
    assert told(tmp_path / "run") <= found
    assert bool(told(tmp_path / "run")) == bool(found)
    if found == {1.0}:
        assert min(td.Run(tmp_path / "run")["loop/clip_norm"].series("value")[1]) > 0
        assert set(td.Run(tmp_path / "run")["loop/clip_limit"].series("value")[1]) == {0.5}


def test_parts_that_step_one_after_the_other(tmp_path: Path) -> None:
    """What is clipped between two steps is used by the second."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizers = [torch.optim.SGD(model[i].parameters(), lr=0.01) for i in (0, 2)]
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for _ in range(8):
            model.zero_grad()
            model(torch.randn(16, 4)).square().mean().backward()
            for part, optimizer in zip((model[0], model[2]), optimizers, strict=True):
                nn.utils.clip_grad_norm_(part.parameters(), 0.5)
                optimizer.step()
    assert told(tmp_path / "run") == {0.0}


def test_what_another_optimizer_uses(tmp_path: Path) -> None:
    """Of the one whose steps count, no gradients were clipped."""
    torch.manual_seed(0)
    model, other = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizers = [torch.optim.SGD(part.parameters(), lr=0.01) for part in (model, other)]
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for _ in range(8):
            for part, optimizer in zip((model, other), optimizers, strict=True):
                part.zero_grad()
                if part is other:
                    nn.utils.clip_grad_norm_(part.parameters(), 0.5)
                part(torch.randn(16, 4)).square().mean().backward()
                optimizer.step()
    assert 1.0 not in told(tmp_path / "run")


def test_the_norm_is_of_what_was_clipped(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    x = torch.randn(16, 4)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for _ in range(4):
            optimizer.zero_grad()
            nn.utils.clip_grad_norm_(model[0].parameters(), 0.5)
            model(x).square().mean().backward()
            optimizer.step()
    norm = nn.utils.clip_grad_norm_(model[0].parameters(), 1e9)
    found = td.Run(tmp_path / "run")["loop/clip_norm"].series("value")[1]
    assert found.tolist() == pytest.approx([norm.item()] * len(found))
