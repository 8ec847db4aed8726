"""Losses that are not finite, of which the loop makes no backward pass."""

from __future__ import annotations

import math
from contextlib import nullcontext

import pytest
import torch
from torch import nn

import traindbg as td

ASKED = {
    "isfinite": lambda loss: bool(torch.isfinite(loss)),
    "isnan": lambda loss: not (torch.isnan(loss) or torch.isinf(loss)),
    "method": lambda loss: bool(loss.isfinite()),
    "item": lambda loss: math.isfinite(loss.item()),
    "float": lambda loss: math.isfinite(float(loss)),
}
FUNCTIONS = [torch.isfinite, torch.isnan, torch.isinf]
METHODS = ("isfinite", "isnan", "isinf", "item", "__float__")


def train(is_bad, run_dir=None, asks=ASKED["isfinite"], steps=40, views=1):
    """How many steps were made, and the model."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watching = nullcontext() if run_dir is None else td.watch(model, run_dir=run_dir)
    made = 0
    with watching:
        for step in range(steps):
            x = torch.randn(16, 6)
            outputs = [model(x + view) for view in range(views)]
            loss = sum((output - x[:, :1]).square().mean() for output in outputs)
            if is_bad(step):
                loss = loss / torch.zeros(())
            if not asks(loss):
                continue
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            made += 1
    return made, model


def left(run):
    if not run.names("losses_left_out"):
        return {}
    facts = run.scalars("loop/losses_left_out")
    return dict(zip(facts.steps.tolist(), facts.values.tolist(), strict=True))


def nothing_listens():
    assert [torch.isfinite, torch.isnan, torch.isinf] == FUNCTIONS
    assert not [name for name in METHODS if name in vars(torch.Tensor)]


@pytest.mark.parametrize("asks", ASKED)
def test_losses_that_are_left_out_are_counted_in_the_step_that_follows(asks, run_dir):
    made, _ = train(lambda step: step % 5 == 3, run_dir, ASKED[asks])
    assert made == 32
    run = td.Run(run_dir)
    told = left(run)
    assert sum(told.values()) == 7, "the first of the eight is what makes us listen"
    assert set(told.values()) == {1}
    value = run.scalars("loss/left_out").values
    assert value.size == 7
    assert not any(map(math.isfinite, value))
    nothing_listens()


def test_where_nothing_else_follows_they_are_told_as_steps(run_dir):
    made, _ = train(lambda step: step >= 10, run_dir, steps=60)
    assert made == 10
    told = left(td.Run(run_dir))
    assert max(told.values()) == 11
    assert sum(told.values()) >= 33


def test_two_views_of_a_batch_are_nothing_left_out(run_dir):
    train(lambda step: False, run_dir, ASKED["item"], views=2)
    assert left(td.Run(run_dir)) == {}
    nothing_listens()


def test_losses_that_are_trained_on_all_the_same_are_not_left_out(run_dir):
    def asks(loss):
        loss.item()
        return True

    train(lambda step: step > 30, run_dir, asks, views=2)
    assert left(td.Run(run_dir)) == {}


def test_it_is_listened_only_for_a_while(run_dir):
    listening = []

    def asks(loss):
        listening.append("item" in vars(torch.Tensor))
        return math.isfinite(loss.item())

    train(lambda step: False, run_dir, asks, views=2, steps=700)
    assert listening[0]
    assert not listening[-1]
    nothing_listens()


def test_the_training_is_the_same(run_dir):
    _, watched = train(lambda step: step % 4 == 1, run_dir)
    numbers = torch.get_rng_state()
    _, without = train(lambda step: step % 4 == 1)
    assert torch.equal(numbers, torch.get_rng_state())
    for a, b in zip(watched.parameters(), without.parameters(), strict=True):
        assert torch.equal(a, b)
