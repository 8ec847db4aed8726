"""Copies of the watched model that are evaluated instead of it, such as averages of its weights."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules import module as modules
from torch.optim.swa_utils import AveragedModel, update_bn

import traindbg as td
from traindbg.hooks.torch.base.watched import WatchedModels
from traindbg.hooks.torch.evaluations.copies import Copies
from traindbg.hooks.torch.evaluations.standby import standby

X, Y = torch.randn(160, 8), torch.randint(0, 3, (160,))
EPOCHS, STEPS = 4, 3


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Dropout(0.5), nn.Linear(16, 3))


def follow(average: nn.Module, model: nn.Module) -> None:
    with torch.no_grad():
        for mine, new in zip(average.parameters(), model.parameters(), strict=True):
            mine.lerp_(new, 0.1)


def train(
    run_dir,
    average,
    model=None,
    *,
    size=16,
    in_step=None,
    evaluated=None,
    rules=None,
    epochs=EPOCHS,
):
    """Evaluates `average(model)` after each epoch: what is told of it, one number a batch.

    `size`: of its batches; `in_step`: called with what is averaged and a batch, at each step; more
    than the usual `epochs`: no loss is computed.
    """
    torch.manual_seed(0)
    model = model or network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    averaged = average(model)
    rules = rules or ["train_mode_in_validation"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for _ in range(epochs):
            model.train()
            for step in range(STEPS):
                x, y = X[step * 32 : step * 32 + 32], Y[step * 32 : step * 32 + 32]
                if in_step is not None:
                    in_step(averaged, x, y)
                optimizer.zero_grad()
                F.cross_entropy(model(x), y).backward()
                optimizer.step()
                follow(averaged, model)
            model.eval()
            with torch.no_grad():
                for begin in range(96, 160, size):
                    x, y = X[begin : begin + size], Y[begin : begin + size]
                    scores = (evaluated or averaged)(x)
                    if epochs == EPOCHS:
                        F.cross_entropy(scores, y)
    assert not modules._global_forward_pre_hooks  # nothing is left behind
    run = td.Run(run_dir)
    if epochs > EPOCHS:
        return run
    found = run.names("^loop/copy_modules_in_train")
    assert found in ([], ["loop/copy_modules_in_train/1"])  # the batch norm is the first
    return run.scalars(found[0], mode="eval").values.tolist() if found else []


def copied(model: nn.Module) -> nn.Module:
    return copy.deepcopy(model).requires_grad_(False)


class Apart(nn.Module):
    """It has the same class as the watched one, and another width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.Dropout(0.5), nn.Linear(width, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@pytest.mark.parametrize("average", [copied, AveragedModel])
def test_each_batch_but_the_first_is_told(run_dir, average):
    batches = 4 * EPOCHS
    assert train(run_dir, average) == [2.0] * (batches - 1)


def test_evaluations_of_one_batch_are_told_from_the_second_on(run_dir):
    assert train(run_dir, copied, size=64) == [2.0] * (EPOCHS - 1)


@pytest.mark.parametrize("is_set_back", [True, False])
def test_statistics_of_batch_norm_are_no_evaluation(run_dir, is_set_back):
    """They are made in training mode; the evaluation after them is in evaluation mode."""
    batches = [X[begin : begin + 32] for begin in range(0, 96, 32)]

    class Evaluated:
        copy: nn.Module

        def __call__(self, x):
            update_bn(batches, self.copy)
            self.copy.eval()
            scores = self.copy(x)
            self.copy.train(is_set_back)
            return scores

    evaluated = Evaluated()

    def average(model):
        evaluated.copy = AveragedModel(model)
        return evaluated.copy

    assert train(run_dir, average, size=64, evaluated=evaluated) == []


def test_without_a_loss_its_rows_are_told_at_steps_that_are_due(run_dir):
    run = train(run_dir, copied, size=64, epochs=30)
    told = "loop/copy_modules_called_in_train/1"
    assert run.scalars(told).steps.tolist() == [50, 75, 90]  # and after the last one
    assert run.scalars(told).values.tolist() == [2, 2, 2]
    assert run.scalars("loop/rows_in_train_mode_trained").values.tolist() == [0, 0, 0]
    assert run.scalars("loop/rows_in_train_mode").values.tolist() == [64 * 8, 64 * 9, 64 * 5]
    assert run.scalars("loop/rows_in_train_mode_steps").values.tolist() == [8, 9, 5]


def test_without_a_loss_a_copy_in_evaluation_mode_is_none(run_dir):
    run = train(run_dir, lambda model: copied(model).eval(), size=64, epochs=30)
    assert run.names("copy_modules|rows_in_train_mode") == []


def test_a_copy_in_evaluation_mode_is_not_listened_to(run_dir, monkeypatch):
    heard = []
    monkeypatch.setattr(Copies, "_listen", lambda _: heard.append(1))
    assert train(run_dir, lambda model: copied(model).eval()) == []
    assert heard == []


@pytest.mark.parametrize(
    "other",
    [
        lambda _: Apart(4),
        lambda _: nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 3)),
    ],
)
def test_a_model_that_is_no_copy_is_something_else(run_dir, other):
    made = other(None)
    assert train(run_dir, copied, Apart(16), evaluated=made) == []


def test_a_copy_that_is_trained_itself_is_something_else(run_dir):
    """One of several that teach each other."""

    def teach(peer, x, y):
        F.cross_entropy(peer(x), y).backward()

    assert train(run_dir, copy.deepcopy, in_step=teach) == []


def test_a_model_without_anything_that_acts_by_the_mode(run_dir, monkeypatch):
    looked = []
    monkeypatch.setattr(Copies, "_copied_from", lambda _, thing: looked.append(thing))
    plain = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    assert train(run_dir / "plain", copied, plain) == []
    assert looked == []
    assert train(run_dir / "with", copied) == []
    assert looked != []


def test_a_teacher_in_training_mode_whose_model_is_evaluated(run_dir):
    """It is called without gradients at each step, and the student is evaluated."""
    model = network()

    def teach(teacher, x, _):
        with torch.no_grad():
            teacher(x)

    assert train(run_dir, copied, model, in_step=teach, evaluated=model) == []


def test_a_teacher_that_is_called_in_training_and_evaluated(run_dir):
    """What it is called for in training has no loss without gradients: the evaluations are told."""

    def teach(teacher, x, _):
        with torch.no_grad():
            teacher(x)

    assert train(run_dir, copied, in_step=teach) == [2.0] * (4 * EPOCHS - 1)


def test_random_numbers_and_results_are_as_without(run_dir):
    def end(directory, rules) -> tuple[torch.Tensor, list[float]]:
        torch.manual_seed(0)
        model = network()
        told = train(run_dir / directory, copied, model, rules=rules)
        values = [p.detach().flatten() for p in model.parameters()]
        return torch.cat([*values, torch.rand(4)]), told

    (with_copy, told), (without, nothing) = end("a", None), end("b", ["non_finite"])
    assert told != []
    assert nothing == []
    assert torch.equal(with_copy, without)


def test_it_is_looked_for_once_after_some_steps():
    class Hot:
        steps = 24

    class Watched:
        def __init__(self, model):
            self.model = model

        prefix, leader = "", None

    watched, model = WatchedModels(), network()
    watched.add(Watched(model))
    heard = []
    copies = Copies(watched, Hot(), lambda found, given: heard.append(given))
    averaged = copied(model)

    def call():
        standby.hear()
        with torch.no_grad():
            averaged(X)

    copies.look()
    call()
    assert heard == []
    Hot.steps = 25
    copies.look()
    call()
    call()
    assert len(heard) == 2
    copies.forget()
    call()
    assert len(heard) == 2
    averaged.eval()
    copies.look()
    averaged.train()
    copies.look()
    call()
    assert len(heard) == 2


def test_neither_the_copy_nor_its_weights_are_kept_alive(run_dir):
    made = []

    def average(model):
        averaged = copied(model)
        made.append(weakref.ref(averaged))
        return averaged

    assert train(run_dir, average) != []
    gc.collect()
    assert made[0]() is None


def test_it_is_found_and_heard_until_forgotten():
    class Hot:
        steps = 3

    class Watched:
        def __init__(self, model):
            self.model = model

        prefix, leader = "net.", None

    watched, model = WatchedModels(), network()
    watched.add(Watched(model))
    heard = []
    copies = Copies(watched, Hot(), lambda found, given: heard.append((found, given)))
    averaged = copied(model)
    assert copies.evaluated() is None
    with torch.no_grad():
        averaged(X)
    assert heard == [((2, "net.1"), X)]
    assert copies.evaluated() == (2, "net.1")
    assert modules._global_forward_pre_hooks
    model(X)  # the training goes on
    assert not modules._global_forward_pre_hooks
    standby.hear()
    assert modules._global_forward_pre_hooks
    with torch.no_grad():
        averaged(X)
    Hot.steps = 4
    assert copies.evaluated() is None  # it was called before the step
    copies.forget()
    assert not modules._global_forward_pre_hooks
    standby.hear()
    assert not modules._global_forward_pre_hooks
