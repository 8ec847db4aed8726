"""Losses without a gradient in the sum that backward is called on, and what looks like them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td

FACT = "loop/detached_term"


def weighed(loud, tone, step):
    return tone + 0.2 * loud


def stacked(loud, tone, step):
    return torch.stack([loud, tone * 2]).mean()


def subtracted(loud, tone, step):
    return loud - tone  # better than another one, by how much


def watched(loud, tone, step):
    return loud


def with_a_constant(loud, tone, step):
    return 3 * loud + 0.7


def with_noise(loud, tone, step):
    return loud + tone * torch.rand(())


def with_what_is_unknown(loud, tone, step):
    return tone + loud.sqrt()


def train(run_dir, loss_of, *, watch=True, cuts=True, freezes=False, without_grad=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if freezes:
        model[0].requires_grad_(False)
    watcher = None
    if watch:
        rules = ["detached_loss"]
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    seen = []
    for step in range(12):
        x = torch.randn(16, 6)
        out = model(x)
        given = torch.from_numpy(out.detach().numpy().copy()) if cuts else out
        with torch.set_grad_enabled(not without_grad):
            tone = F.l1_loss(given, x[:, :4])
        loss = loss_of(F.mse_loss(out, x[:, :4]), tone, step)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, seen)


def told(run_dir):
    run = td.Run(run_dir)
    return {
        name.removeprefix(FACT).strip("/"): run.scalars(name).values.tolist()
        for name in run.names()
        if name.startswith(FACT)
    }


@pytest.mark.parametrize("loss_of", [weighed, stacked])
def test_a_term_without_a_gradient_is_told_with_its_share(run_dir, loss_of):
    assert train(run_dir, loss_of) == train(None, loss_of, watch=False)
    found = told(run_dir)
    assert found[""] == [0.0]  # at the first look there is nothing to compare with
    assert len(found["l1_loss"]) == 9
    assert all(0.4 < share < 1 for share in found["l1_loss"])


@pytest.mark.parametrize(
    "loss_of", [subtracted, watched, with_a_constant, with_noise, with_what_is_unknown]
)
def test_what_is_no_such_term(run_dir, loss_of):
    train(run_dir, loss_of)
    assert set(told(run_dir)) <= {""}


def test_a_term_with_a_gradient_is_none(run_dir):
    train(run_dir, weighed, cuts=False)
    assert told(run_dir) == {}


def test_of_a_model_that_is_frozen_in_part_nothing_is_told(run_dir):
    train(run_dir, weighed, freezes=True)
    assert told(run_dir) == {}


def test_what_is_computed_without_gradients_on_purpose_is_none(run_dir):
    train(run_dir, weighed, without_grad=True)
    assert told(run_dir) == {}
