"""An evaluation after the last step is told of at the end, where something is wrong with it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

X, Y = torch.randn(300, 8), torch.randint(0, 3, (300,))
STEPS = 24


def train(run_dir, test, *, dropout=True) -> td.Run:
    """Goes through 200 rows three times, without a word of evaluations, and then does `test`."""
    torch.manual_seed(0)
    layers = [nn.Linear(8, 16), nn.Dropout(0.5) if dropout else nn.ReLU(), nn.Linear(16, 3)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    rules = ["train_mode_in_validation", "train_val_overlap"]
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for step in range(STEPS):
            rows = slice(25 * (step % 8), 25 * (step % 8) + 25)
            optimizer.zero_grad()
            F.cross_entropy(model(X[rows]), Y[rows]).backward()
            optimizer.step()
        test(model)
    return td.Run(run_dir)


def last(run, fact):
    """Value of a fact after the last step; None where it is not told."""
    if f"loop/{fact}" not in run:
        return None
    steps, values = run[f"loop/{fact}"].series("value")
    return values[-1] if steps[-1] == STEPS else None


def test_without_eval(run_dir):
    @torch.no_grad()
    def test(model):
        for part in X[200:].split(50):
            model(part)

    run = train(run_dir, test)
    assert last(run, "after_last_step") == 1
    assert last(run, "rows_in_train_mode_batches") == 2
    assert last(run, "rows_in_train_mode") == 100
    assert last(run, "rows_in_train_mode_trained") == 0
    assert last(run, "rows_in_train_mode_again") == 0
    assert last(run, "modules_called_in_train/1") == 1


def test_draws_of_dropout_are_the_same_batch_again(run_dir):
    def test(model):
        with torch.no_grad():
            for _ in range(5):
                model(X[200:])

    assert last(train(run_dir, test), "rows_in_train_mode_again") == 4


def evaluated(rows):
    def test(model):
        model.eval()
        with torch.no_grad():
            model(X[rows])

    return test


def test_the_mode_is_that_of_the_call(run_dir):
    """The model is in another one at the end, or gone."""

    def test(model):
        with torch.no_grad():
            model(X[200:])
        model.eval()

    assert last(train(run_dir, test), "modules_called_in_train/1") == 1


def test_a_part_in_evaluation_mode(run_dir):
    def test(model):
        model[1].eval()
        with torch.no_grad():
            model(X[200:])
        model[1].train()

    assert last(train(run_dir, test), "after_last_step") is None


def test_evaluation_mode_beside_it(run_dir):
    def test(model):
        with torch.no_grad():
            model.eval()
            model(X[250:])
            model.train()
            model(X[200:250])

    run = train(run_dir, test)
    assert last(run, "rows_in_train_mode") == 50
    assert last(run, "rows_unscored_batches") == 1


def test_nothing_of_a_training_that_was_broken_off(run_dir):
    def test(model):
        with torch.no_grad():
            model(X[200:])
        raise ValueError

    with pytest.raises(ValueError):
        train(run_dir, test)
    assert "loop/after_last_step" not in td.Run(run_dir)


@pytest.mark.parametrize(
    ("test", "dropout"),
    [
        pytest.param(evaluated(slice(200, 300)), True, id="in evaluation mode, of other rows"),
        pytest.param(lambda model: model.eval(), True, id="none"),
        pytest.param(
            lambda model: model(X[200:]), True, id="with gradients, which may be training"
        ),
        pytest.param(
            torch.no_grad()(lambda model: model(X[200:])), False, id="nothing acts in another way"
        ),
    ],
)
def test_nothing_is_told_of_what_is_not_wrong(run_dir, test, dropout):
    run = train(run_dir, test, dropout=dropout)
    assert last(run, "after_last_step") is None
    assert last(run, "rows_unscored") is None


def test_the_number_of_steps_is_that_of_the_optimizer(run_dir):
    run = train(run_dir, evaluated(slice(200, 300)))
    assert run.steps(mode="train")[-1] == STEPS - 1
