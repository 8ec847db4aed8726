"""Losses that a loop writes out: what was compared is read from their graphs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.losses.compared import mark_returned, written_out

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]

LOSSES: dict[str, tuple[str, Loss]] = {
    "power": ("mse_loss", lambda p, t: ((p - t) ** 2).mean()),
    "pow": ("mse_loss", lambda p, t: torch.pow(t - p, 2).mean()),
    "square": ("mse_loss", lambda p, t: torch.square(p - t).mean()),
    "times itself": ("mse_loss", lambda p, t: ((d := p - t) * d).mean()),
    "root": ("mse_loss", lambda p, t: ((p - t) ** 2).mean().sqrt()),
    "sum": ("mse_loss", lambda p, t: ((p - t) ** 2).sum()),
    "absolute": ("l1_loss", lambda p, t: (t - p).abs().mean()),
}


@pytest.mark.parametrize("name", LOSSES)
def test_prediction_and_target_are_found(name: str) -> None:
    function, loss_of = LOSSES[name]
    model = nn.Linear(3, 1)
    returned = model(torch.randn(16, 3))
    mark_returned(returned, 7)
    target = torch.randint(0, 5, (16,)).float()
    found = written_out(loss_of(returned.squeeze(1), target), {7: returned.detach()})
    assert found is not None
    assert found.function == function
    assert torch.equal(found.prediction, returned.detach().squeeze(1))
    assert torch.equal(found.target, target)  # bit for bit: they are whole numbers
    assert bool(found.is_mean) == (name not in ("root", "sum"))
    assert found.terms.item() == (16 if name == "sum" else 0)
    assert not found.prediction.requires_grad
    assert not found.target.requires_grad


@pytest.mark.parametrize(
    ("loss_of", "is_of_columns"),
    [
        (lambda e: e.mean(0).sum(), True),
        (lambda e: e.sum(1).mean(), True),
        (lambda e: e.mean(), False),
        (lambda e: (e.mean(0) * torch.tensor([0.3, 1.7])).sum(), False),
    ],
)
def test_the_sum_of_the_means_of_columns(
    loss_of: Callable[[torch.Tensor], torch.Tensor], is_of_columns: bool
) -> None:
    model = nn.Linear(3, 2)
    returned = model(torch.randn(16, 3))
    mark_returned(returned, 7)
    loss = loss_of((returned - torch.randn(16, 2)) ** 2)
    found = written_out(loss, {7: returned.detach()})
    assert found is not None
    assert bool(found.is_of_columns) == is_of_columns


def test_a_target_of_real_numbers_is_near() -> None:
    model, target = nn.Linear(3, 2), torch.randn(16, 2) * 100
    returned = model(torch.randn(16, 3))
    mark_returned(returned, 0)
    found = written_out(((returned - target) ** 2).mean(), {0: returned.detach()})
    assert found is not None
    torch.testing.assert_close(found.target, target, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    "cut",
    [
        (slice(None), slice(3, None)),
        (slice(None), slice(-3, None)),
        (slice(1, -1), slice(None, None, 2)),
        (..., slice(None, -2)),
        (slice(None), slice(0, None)),
    ],
)
def test_a_part_of_a_difference(cut: tuple[slice, ...]) -> None:
    model, target = nn.Linear(3, 9), torch.randint(0, 5, (6, 9)).float()
    returned = model(torch.randn(6, 3))
    mark_returned(returned, 0)
    found = written_out(((returned - target)[cut].flatten() ** 2).mean(), {0: returned.detach()})
    assert found is not None
    assert torch.equal(found.target, target[cut].flatten())
    assert torch.equal(found.prediction, returned.detach()[cut].flatten())
    assert bool(found.is_mean)


@pytest.mark.parametrize("leaks", [True, False])
@pytest.mark.parametrize("first", [0, 8])
def test_a_forecast_that_sees_what_it_forecasts(run_dir: Path, leaks: bool, first: int) -> None:
    torch.manual_seed(0)
    pad = (1, 1) if leaks else (2, 0)
    model = nn.Sequential(nn.ConstantPad1d(pad, 0.0), nn.Conv1d(1, 1, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["future_leak"])
    for _ in range(4):
        series = torch.randn(4, 21).cumsum(1)
        x = series[:, None, :-1]
        loss = ((model(x)[:, 0] - series[:, 1:])[:, first:] ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    watcher.detach()
    run = td.Run(run_dir)
    (name,) = (name for name in run.names() if name.startswith("loop/later_seen"))
    assert set(run.scalars(name).values.tolist()) == {float(leaks)}


def test_what_the_inputs_tell_of_the_target(run_dir: Path) -> None:
    """Neighbours have targets that are hardly apart."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    for _ in range(10):
        x = torch.rand(64, 2)
        loss = ((model(x)[:, 0] - x.sum(1)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    watcher.detach()
    run = td.Run(run_dir)
    near, any_two = (
        run.scalars(f"loop/{name}").values[0]
        for name in ("neighbours_differ", "neighbours_any_differ")
    )
    assert near < 0.05 * any_two


@pytest.mark.parametrize(
    "loss_of",
    [
        F.mse_loss,
        lambda p, t: ((2 * p - t) ** 2).mean(),  # not what the model returned
        lambda p, t: ((p - t) ** 3).mean(),
        lambda p, t: (p - t).mean(),
        lambda p, t: ((p.unsqueeze(1) - t) ** 2).mean(),  # another fault's
        lambda p, t: -(p * t).mean(),
    ],
)
def test_what_is_no_such_loss_is_left_alone(loss_of: Loss) -> None:
    model = nn.Linear(3, 1)
    returned = model(torch.randn(16, 3))
    mark_returned(returned, 0)
    prediction = returned.squeeze(1)
    assert written_out(loss_of(prediction, torch.randn(16)), {0: returned.detach()}) is None
    assert written_out(((prediction - torch.randn(16)) ** 2).mean(), {}) is None


def train(run_dir: Path | None) -> str:
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    watcher = None
    if run_dir is not None:
        watcher = td.watch(
            model, optimizer, run_dir=run_dir, supervise=False, rules=["wrong_loss"], every=1
        )
    losses = []
    for _ in range(12):
        x, y = torch.randn(16, 4), torch.randint(0, 4, (16,))
        loss = torch.mean((model(x).squeeze(1) - y.float()) ** 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, losses)


def test_rules_see_it_as_a_call_of_a_loss_function(run_dir: Path) -> None:
    assert train(None) == train(run_dir)
    run = td.Run(run_dir)
    assert run.scalars("loop/loss_is_written_out").values.tolist() == [1] * 10
    labels = run["label/mse_loss"].series("max").values
    assert len(labels) == 10
    assert np.array_equal(labels, np.round(labels))
    predictions = run["prediction/mse_loss"]
    assert predictions.steps().tolist() == list(range(10))


@pytest.mark.parametrize(
    ("how", "shows"), [("mask", True), ("focal", False), ("rewards", False), ("advantages", False)]
)
def test_a_loss_for_each_sample_that_the_loop_reduces(run_dir: Path, how: str, shows: bool) -> None:
    torch.manual_seed(4)
    model = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for _ in range(8):
            x, y = torch.randn(32, 4), torch.randint(0, 3, (32,))
            each = F.cross_entropy(model(x), y, reduction="none")
            weights = {
                "mask": (torch.arange(32) < 29).float(),
                "focal": (1 - (-each).exp()) ** 2,
                "rewards": torch.rand(32) * 50,
                "advantages": torch.randn(32) - 1,
            }[how]
            optimizer.zero_grad()
            (each * weights).mean().backward()
            optimizer.step()
    values = td.Run(run_dir).scalars("loop/loss_is_reduced_later").values.tolist()
    assert values == [1.0 if shows else 0.0] * 8


def test_nothing_of_the_training_is_kept() -> None:
    """What a model returned is dropped when backward begins, and with the recording."""
    import gc
    import weakref

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept: list[weakref.ref[torch.Tensor]] = []
    watcher = td.watch(model, optimizer, supervise=False, rules=["wrong_loss"])
    handle = model.register_forward_hook(
        lambda module, args, output: kept.append(weakref.ref(output.untyped_storage()))
    )
    for _ in range(3):
        ((model(torch.randn(8, 4)) - 1) ** 2).mean().backward()
        optimizer.step()
    gc.collect()
    assert [ref() for ref in kept] == [None, None, None]
    model(torch.randn(8, 4))  # without a backward
    handle.remove()
    watcher.detach()
    gc.collect()
    assert kept[-1]() is None


def test_what_hooks_packed_is_not_unpacked_by_us(run_dir: Path) -> None:
    """Offloading unpacks each tensor once; a second time is its error."""
    store: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> int:
        store[len(store) + 1000 * len(losses)] = tensor
        return len(store) - 1 + 1000 * len(losses)

    def unpack(key: int) -> torch.Tensor:
        return store.pop(key)

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses: list[float] = []
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["wrong_loss"]):
        for _ in range(4):
            store.clear()
            with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
                loss = ((model(torch.randn(8, 4)) - torch.randn(8, 1)) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert len(losses) == 4
    assert "loop/loss_is_written_out" not in td.Run(run_dir)


def test_a_checkpointed_loss_is_computed_twice_and_not_more(run_dir: Path) -> None:
    from torch.utils.checkpoint import checkpoint

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    calls = []

    def compute(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return ((model(x) - y) ** 2).mean()

    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["wrong_loss"]):
        for _ in range(4):
            loss = checkpoint(compute, torch.randn(8, 4), torch.randn(8, 1), use_reentrant=False)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert len(calls) == 8
