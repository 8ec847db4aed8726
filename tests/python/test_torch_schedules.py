"""Which schedules are told of: those of the optimizer that steps that are never stepped."""

from __future__ import annotations

import gc
import warnings
import weakref

import pytest
import torch
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

import traindbg as td
from traindbg.hooks.torch.steps import patches

_FACTS = ("schedule_not_stepped", "schedule_of_another")


def told(run_dir) -> list[str]:
    return sorted(name for fact in _FACTS for name in td.Run(run_dir).names(fact))


def train(model, optimizer, each_step=lambda: None, steps: int = 30) -> None:
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.randn(3, 4)), torch.randn(3, 2)).backward()
        optimizer.step()
        each_step()


def watched(model, optimizer, run_dir):
    return td.watch(
        model, optimizer, run_dir=run_dir, supervise=False, rules=["schedule_never_steps"]
    )


@pytest.fixture(name="listening")
def _listening():
    patches.acquire()
    yield
    patches.release()


def sgd(model) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.1)


MAKERS = {
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 100),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 50),
    "OneCycleLR": lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=100),
    "ReduceLROnPlateau": lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=1000),
    "StepLR": lambda o: lr_scheduler.StepLR(o, 1000),
    "SequentialLR": lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 1.0), lr_scheduler.StepLR(o, 1000)], [500]
    ),
    "ChainedScheduler": lambda o: lr_scheduler.ChainedScheduler(
        [lr_scheduler.StepLR(o, 1000), lr_scheduler.StepLR(o, 2000)]
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_schedule_that_is_not_stepped_is_told(run_dir, listening, name) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    schedule = MAKERS[name](optimizer)
    with watched(model, optimizer, run_dir):
        train(model, optimizer)
    assert told(run_dir) == [f"loop/schedule_not_stepped/{name}"]
    del schedule


@pytest.mark.parametrize("name", MAKERS)
def test_one_step_is_enough(run_dir, listening, name) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    schedule = MAKERS[name](optimizer)
    with watched(model, optimizer, run_dir):
        train(model, optimizer)
        schedule.step(*([1.0] if name == "ReduceLROnPlateau" else []))
        del schedule
    assert told(run_dir) == []


def test_a_schedule_that_was_made_before_is_found(run_dir) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    schedule = MAKERS["SequentialLR"](optimizer)
    with watched(model, optimizer, run_dir):
        train(model, optimizer)
    assert told(run_dir) == ["loop/schedule_not_stepped/SequentialLR"]
    del schedule


def test_a_schedule_of_a_function_that_has_returned_is_told(run_dir, listening) -> None:
    model = nn.Linear(4, 2)

    def whole() -> weakref.ref[torch.optim.Optimizer]:
        optimizer = sgd(model)
        schedule = MAKERS["StepLR"](optimizer)
        train(model, optimizer)
        del schedule
        return weakref.ref(optimizer)

    with watched(model, None, run_dir):
        optimizer = whole()
        gc.collect()
        assert optimizer() is None
    assert told(run_dir) == ["loop/schedule_not_stepped/StepLR"]


def test_the_schedule_of_an_optimizer_that_was_replaced_is_told(run_dir, listening) -> None:
    model = nn.Linear(4, 2)
    first = sgd(model)
    schedule = MAKERS["StepLR"](first)
    optimizer = sgd(model)
    with watched(model, optimizer, run_dir), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's own, of the order of the two steps
        train(model, optimizer, schedule.step)
    assert told(run_dir) == ["loop/schedule_of_another/StepLR"]


def test_schedules_of_other_models_and_of_a_later_stage_are_not(run_dir, listening) -> None:
    model, other = nn.Linear(4, 2), nn.Linear(4, 2)
    optimizer, later, foreign = sgd(model), sgd(model), sgd(other)
    schedules = [MAKERS["StepLR"](later), MAKERS["StepLR"](foreign)]
    with watched(model, optimizer, run_dir), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        train(model, optimizer, schedules[1].step)
    assert told(run_dir) == []


def test_epochs_are_counted_by_the_data(run_dir, listening) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    schedule = MAKERS["StepLR"](optimizer)
    data = TensorDataset(torch.randn(8, 4), torch.randn(8, 2))
    with watched(model, optimizer, run_dir):
        for _ in range(5):
            for x, y in DataLoader(data, batch_size=4):
                optimizer.zero_grad()
                nn.functional.mse_loss(model(x), y).backward()
                optimizer.step()
    (value,) = td.Run(run_dir).tensor("loop/schedule_not_stepped/StepLR").values("value")
    assert value == 5
    del schedule


def test_an_interrupted_training_may_have_been_in_its_first_epoch(run_dir, listening) -> None:
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    schedule = MAKERS["StepLR"](optimizer)

    def interrupted() -> None:
        with watched(model, optimizer, run_dir):
            train(model, optimizer)
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        interrupted()
    assert told(run_dir) == []
    del schedule


def test_warnings_of_schedules_name_the_line_of_the_training(listening) -> None:
    schedule = MAKERS["StepLR"](sgd(nn.Linear(4, 2)))
    with pytest.warns(UserWarning, match="before `optimizer.step") as found:
        schedule.step()
    assert found[0].filename == __file__


@pytest.mark.parametrize(
    ("make", "base"),
    [
        (lambda o: lr_scheduler.LambdaLR(o, lambda step: min(1, (step + 1) / 1000)), [0.1]),
        (lambda o: lr_scheduler.LinearLR(o, 0.001, total_iters=1000), [0.1]),
        (MAKERS["OneCycleLR"], []),  # it knows the top of its rate
        (lambda o: None, []),
    ],
)
def test_what_a_schedule_multiplies(tmp_path, make, base):
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    schedule = make(optimizer)
    with watched(model, optimizer, tmp_path / "run"):
        train(model, optimizer, schedule.step if schedule else lambda: None)
    run = td.Run(tmp_path / "run")
    name = "loop/learning_rate_base"
    assert (list(run[name].series("value")[1]) if name in run else []) == base


_PLATEAU = ("sense", "values", "turned", "first", "last")


def plateaus(run_dir, make, values) -> list[tuple[float, ...]]:
    """What is told of each cut of a schedule that is given these values, one before each step."""
    model = nn.Linear(4, 2)
    optimizer = sgd(model)
    schedule = make(optimizer)
    given = iter(values)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["schedule_collapsed"]):
        train(model, optimizer, lambda: schedule.step(next(given)), len(values))
        train(model, optimizer, steps=1)
    run = td.Run(run_dir)
    if not run.names("loop/plateau_sense"):
        return []
    told = [run[f"loop/plateau_{name}"].series("value")[1] for name in _PLATEAU]
    return [tuple(map(float, each)) for each in zip(*told, strict=True)]


def plateau(mode: str):
    return lambda o: lr_scheduler.ReduceLROnPlateau(o, mode=mode, patience=1)


def test_a_plateau_whose_first_number_stays_the_best_is_told(run_dir, listening) -> None:
    found = plateaus(run_dir, plateau("max"), [3.0, 2.0, 1.0, 1.5, 0.5])
    assert found == [(1, 3, 2, 3.0, 1.0), (1, 5, 3, 3.0, 0.5)]


def test_the_other_way_round(run_dir, listening) -> None:
    assert plateaus(run_dir, plateau("min"), [0.2, 0.4, 0.5, 0.6]) == [(-1, 3, 2, 0.2, 0.5)]


def test_the_second_number_may_be_the_best_one(run_dir, listening) -> None:
    found = plateaus(run_dir, plateau("min"), [0.4, 0.3, 0.5, 0.6, 0.7, 0.8])
    assert found == [(-1, 4, 2, 0.3, 0.6), (-1, 6, 4, 0.3, 0.8)]


@pytest.mark.parametrize("values", [[3.0, 2.0, 4.0, 3.0, 2.0], [1.0, 2.0, 3.0, 2.0, 1.0]])
def test_a_plateau_that_has_found_a_better_one_is_not(run_dir, listening, values) -> None:
    assert plateaus(run_dir, plateau("max"), values) == []


def test_a_plateau_that_was_loaded_is_not(run_dir, listening) -> None:
    def resumed(optimizer):
        before = plateau("max")(optimizer)
        before.step(3.0)
        schedule = plateau("max")(optimizer)
        schedule.load_state_dict(before.state_dict())
        return schedule

    assert plateaus(run_dir, resumed, [2.0, 1.0, 0.5]) == []
