"""Which clipping is told to be in vain: that which comes before the backward pass."""

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
        ("clip clear back step", {1.0}),
        ("clear back step clip", {0.0, 1.0}),
        ("clear back clip step", {0.0}),
        ("clear clip back clip step", {0.0}),
        ("clear back clip back clip step", {0.0}),
        ("clear back step", set()),
    ],
)
def test_orders(tmp_path: Path, order: str, found: set[float]) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    moves: dict[str, Callable[[], object]] = {
        "clear": optimizer.zero_grad,
        "clip": lambda: nn.utils.clip_grad_norm_(model.parameters(), 0.5),
        "back": lambda: model(torch.randn(8, 4)).square().mean().backward(),
        "step": optimizer.step,
    }
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for _ in range(8):
            for move in order.split():
                moves[move]()
    assert told(tmp_path / "run") <= found
    assert bool(told(tmp_path / "run")) == bool(found)
    if 1.0 in found:
        assert 1.0 in told(tmp_path / "run")
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
