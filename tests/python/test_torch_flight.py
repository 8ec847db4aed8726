"""The flight recorder and the budget, through `watch`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint, train

import traindbg as td


def steps_of(model: nn.Module, count: int, seed: int = 3, bad_at: int = -1) -> list[np.ndarray]:
    """Trains; gives the gradient of the first weight at each step."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    gradients = []
    for step in range(count):
        inputs = torch.randn(8, 4, generator=generator)
        if step == bad_at:
            inputs[0, 0] = float("nan")
        loss = F.mse_loss(model(inputs), torch.ones(8, 1))
        optimizer.zero_grad()
        loss.backward()
        if step == bad_at:
            model.zero_grad(set_to_none=False)
        gradients.append(next(model.parameters()).grad.numpy().copy())
        optimizer.step()
    return gradients


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 1))


def test_the_steps_before_a_loss_that_is_not_finite_are_kept_whole(tmp_path: Path) -> None:
    net = model()
    flight = {"steps": 5, "collect": ["weights", "outputs"], "raw": "gradients"}
    with td.watch(net, run_dir=tmp_path / "run", rules=[], flight_recorder=flight, supervise=False):
        gradients = steps_of(net, 60, bad_at=40)
    run = td.Run(tmp_path / "run")
    assert run["gradient/0.weight"].steps().size == 0
    kept = run.flight
    assert kept is not None
    assert kept.damage == []
    steps = kept["gradient/0.weight"].raw_steps().tolist()
    assert set(range(36, 44)) <= set(steps)
    for step in steps:
        np.testing.assert_array_equal(kept["gradient/0.weight"].value(step), gradients[step])
    assert {"weight/0.weight", "output/0", "loss"} <= set(kept.names())
    reasons = [e["data"] for e in run.events if e["kind"] == "flight_recorder"]
    assert reasons == [{"step": 40, "reason": "a loss is not finite"}]
    at = kept.scalars("loss")
    assert np.isnan(at.values[at.steps.tolist().index(40)])


def test_an_exception_keeps_the_steps_before_it(tmp_path: Path) -> None:
    net = model()
    watcher = td.watch(net, run_dir=tmp_path / "run", rules=[], flight_recorder=4, supervise=False)

    def fails() -> None:
        with watcher:
            steps_of(net, 30)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    kept = td.Run(tmp_path / "run").flight
    assert kept is not None
    assert set(range(26, 30)) <= set(kept["gradient/0.weight"].steps().tolist())
    events = [e["data"]["reason"] for e in kept.events if e["kind"] == "flight_recorder"]
    assert events == ["the training raised ZeroDivisionError"]


def test_a_training_that_ends_well_leaves_no_flight(tmp_path: Path) -> None:
    net = model()
    with td.watch(net, run_dir=tmp_path / "run", rules=[], flight_recorder=4, supervise=False):
        steps_of(net, 30)
        assert (tmp_path / "run" / "flight").is_dir()
    assert not (tmp_path / "run" / "flight").exists()
    assert td.Run(tmp_path / "run").flight is None


@pytest.mark.parametrize("kind", ["plain", "dropout", "adam", "transformer"])
def test_neither_changes_the_training(tmp_path: Path, kind: str) -> None:
    def watch(net: nn.Module, optimizer: torch.optim.Optimizer) -> td.Watcher:
        return td.watch(
            net,
            optimizer,
            run_dir=tmp_path / "run",
            collect="gradients",
            every=3,
            budget=0.01,
            flight_recorder={"steps": 3, "raw": ["weights", "activations"]},
            supervise=False,
        )

    assert train(kind, watch) == train(kind)


def test_a_budget_is_kept_and_told(tmp_path: Path) -> None:
    # One second's worth is there from the start: a share so small is used up at once.
    net = model()
    everything = ["weights", "biases", "gradients", "inputs", "outputs", "activations"]
    with td.watch(
        net,
        run_dir=tmp_path / "run",
        rules=[],
        collect=everything,
        raw=everything,
        budget=1e-6,
        supervise=False,
    ):
        steps_of(net, 300)
    run = td.Run(tmp_path / "run")
    thins, last = (e["data"] for e in run.events if e["kind"].startswith("budget"))
    assert thins["steps_left_out"] == 1
    taken = run["gradient/0.weight"].steps().tolist()
    assert last["steps_due"] == 300
    assert len(taken) == 300 - last["steps_left_out"]
    assert taken[0] == 0
    assert len(taken) < 100, "1 us is there to begin with, and a step costs more"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"budget": 1.5}, "budget=1.5"),
        ({"budget": "2%"}, "budget='2%'"),
        ({"flight_recorder": 0}, "steps=0"),
        ({"flight_recorder": {"stepz": 3}}, "did you mean 'steps'"),
        ({"flight_recorder": {"steps": 3, "raw": "gradient"}}, "did you mean 'gradients'"),
        ({"flight_recorder": "many"}, "flight_recorder='many'"),
    ],
)
def test_bad_arguments_are_named(tmp_path: Path, arguments: dict, word: str) -> None:
    with pytest.raises(td.errors.InvalidArgument) as caught:
        td.watch(model(), run_dir=tmp_path / "run", supervise=False, **arguments)
    assert word in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_fingerprints_tell_trainings_apart() -> None:
    assert fingerprint(model(), [1.0]) != fingerprint(model(), [2.0])
