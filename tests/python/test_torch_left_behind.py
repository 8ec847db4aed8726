"""An optimizer whose model is gone, and that steps on; what is done in its place all the same."""

from __future__ import annotations

import copy
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings

FACT = "loop/optimizer_left_behind"
STEPS = 40


def made() -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))


def train(run_dir, kind, watch=True):
    torch.manual_seed(0)
    model = made()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    if watch:
        rules = ["parameters_not_in_optimizer"]
        td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    is_gone = None
    for step in range(STEPS):
        if step == 12 and kind == "loaded":
            model.load_state_dict(copy.deepcopy(model).state_dict())
        elif step == 12:
            copied = made() if kind == "drawn" else copy.deepcopy(model)
            for own, other in zip(copied, model, strict=True):
                if kind == "same parameters":
                    own._parameters.update(other._parameters)
            is_gone = weakref.ref(model)
            model = copied
            if kind == "new optimizer":
                optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
            if kind == "two optimizers":
                second = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(16, 6), torch.randint(0, 3, (16,))
        optimizer.zero_grad()
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        optimizer.step()
        if kind == "two optimizers" and step >= 12:
            second.step()
        if kind == "by hand" and step >= 12:
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(parameter.grad, alpha=0.1)
    gc.collect()
    assert is_gone is None or is_gone() is None
    if recordings.current is not None:
        recordings.current.close()
    return [parameter.detach().clone() for parameter in model.parameters()]


@pytest.mark.parametrize("kind", ["copied", "drawn"])
def test_it_is_told_that_nothing_is_trained(run_dir, kind):
    train(run_dir, kind)
    told = td.Run(run_dir).scalars(FACT)
    assert told.values.tolist() == [4]
    assert told.steps.tolist() == [12]  # the last ones are none of the run's


@pytest.mark.parametrize(
    "kind", ["loaded", "same parameters", "new optimizer", "two optimizers", "by hand"]
)
def test_what_is_trained_all_the_same(run_dir, kind):
    train(run_dir, kind)
    assert FACT not in td.Run(run_dir).names()


def test_looking_changes_nothing(run_dir):
    for plain, watched in zip(
        train(run_dir, "copied", watch=False), train(run_dir, "copied"), strict=True
    ):
        assert torch.equal(plain, watched)
