"""Losses that are not finite and left out by a guard, so that no backward pass follows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import traindbg as td

Loss = Callable[[torch.Tensor], torch.Tensor]
BAD_FROM = 4


def likelihood(scores: torch.Tensor) -> torch.Tensor:
    """Of the first class, written out: no loss function is heard."""
    e = torch.exp(scores)
    return -torch.log(e[:, 0] / e.sum(1)).mean()


def run_training(
    run_dir: Path | None, bad: float = 1e4, after: int = 10, keep: bool = True
) -> list[torch.Tensor]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = None
    if run_dir is not None:
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    for step in range(BAD_FROM + after):
        scores = model(torch.randn(16, 4))
        loss = likelihood(scores * (bad if step >= BAD_FROM else 1))
        if torch.isfinite(loss):
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if not keep:
            del loss, scores
    if watcher is not None:
        watcher.detach()
    return [*(p.detach().clone() for p in model.parameters()), torch.random.get_rng_state()]


def test_the_loss_that_is_left_out_is_recorded(run_dir: Path) -> None:
    run_training(run_dir)
    values = td.Run(run_dir).scalars("loss").values
    assert np.isfinite(values[:BAD_FROM]).all()
    assert len(values) > BAD_FROM
    assert not np.isfinite(values[BAD_FROM:]).any()


def test_a_guard_that_leaves_out_two_is_none_of_ours(run_dir: Path) -> None:
    run_training(run_dir, after=2)
    assert len(td.Run(run_dir).scalars("loss").values) == BAD_FROM


def test_a_loss_that_is_gone_is_not_found(run_dir: Path) -> None:
    run_training(run_dir, keep=False)
    assert len(td.Run(run_dir).scalars("loss").values) == BAD_FROM


@pytest.mark.parametrize("of_another", [False, True])
def test_calls_that_are_no_training(run_dir: Path, of_another: bool) -> None:
    """A model that plays in training mode; a number of another model's is not finite."""
    torch.manual_seed(0)
    model, other = nn.Linear(4, 3), nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    for _ in range(4):
        for _ in range(8):
            model(torch.randn(16, 4))
            if of_another:
                held = likelihood(other(torch.randn(16, 4)) * 1e4)
                assert not held.isfinite()
        loss = likelihood(model(torch.randn(16, 4)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    watcher.detach()
    values = td.Run(run_dir).scalars("loss").values
    assert len(values) == 4
    assert np.isfinite(values).all()


def test_a_model_that_is_called_several_times_for_one_backward_pass(run_dir: Path) -> None:
    """A number that is kept for a log is infinite."""
    torch.manual_seed(0)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    for _ in range(8):
        total = torch.stack([likelihood(model(torch.randn(16, 4))) for _ in range(5)]).sum()
        perplexity = (100 * total).exp()
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
    watcher.detach()
    assert not perplexity.isfinite()
    values = td.Run(run_dir).scalars("loss").values
    assert len(values) == 8
    assert np.isfinite(values).all()


def test_a_second_training_that_calls_its_model_several_times(run_dir: Path) -> None:
    """What held of the first one, whose model was called once for each step, says nothing of it."""
    torch.manual_seed(0)
    first, second = nn.Linear(4, 3), nn.Linear(4, 3)
    watchers = [td.watch(first, run_dir=run_dir, supervise=False)]
    for model, calls in ((first, 1), (second, 5)):
        if model is second:
            watchers.append(td.watch(second, run_dir=run_dir, supervise=False))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(8):
            losses = [likelihood(model(torch.randn(16, 4))) for _ in range(calls)]
            perplexity = (100 * sum(losses)).exp()
            optimizer.zero_grad()
            torch.stack(losses).sum().backward()
            optimizer.step()
    for watcher in watchers:
        watcher.detach()
    assert not perplexity.isfinite()
    assert np.isfinite(td.Run(run_dir).scalars("loss").values).all()


@pytest.mark.parametrize("kind", ["freed", "a view that was written to"])
def test_numbers_that_cannot_be_read_are_left_alone(run_dir: Path, kind: str) -> None:
    weight = torch.ones(2, requires_grad=True)
    held = (weight * 2).sum().reshape(1)
    if kind == "freed":
        held.untyped_storage().resize_(0)
    else:
        base = torch.zeros(2)
        with torch.no_grad():
            held = base[:1]
        base.mul_(weight)
    run_training(run_dir)
    assert len(td.Run(run_dir).scalars("loss").values) > BAD_FROM
    assert held is not None


def test_the_training_is_the_same(run_dir: Path) -> None:
    plain, watched = run_training(None), run_training(run_dir)
    assert all(torch.equal(a, b) for a, b in zip(plain, watched, strict=True))
