"""Dropout by functions that are not told of the mode goes on in evaluations: twins beside it."""

from __future__ import annotations

import functools
import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import fingerprint

import traindbg as td

X, Y = torch.randn(96, 8), torch.randint(0, 3, (96,))


class Head(nn.Module):
    def __init__(self, drop) -> None:
        super().__init__()
        self.drop = drop

    def forward(self, h):
        return self.drop(self, h)


def attention(rate):
    def drop(module, h):
        q = h[:, None, :4]
        return h + F.scaled_dot_product_attention(q, q, q, dropout_p=rate(module)).sum(2)

    return drop


def channels(module, h):
    return F.dropout2d(h[:, :, None, None], 0.2).flatten(1)


ON_PURPOSE = {"p": 0.3, "training": True}
UNSAID = {
    "nothing": lambda module, h: F.dropout(h),
    "position": lambda module, h: F.dropout(h, 0.3),
    "names": lambda module, h: F.dropout(p=0.3, input=h, inplace=False),
    "channels": channels,
    "attention": attention(lambda module: 0.3),
}
SAID = {
    "the mode": lambda module, h: F.dropout(h, 0.3, training=module.training),
    "by position": lambda module, h: F.dropout(h, 0.3, module.training),
    "on purpose": lambda module, h: F.dropout(h, 0.3, training=True),
    "arguments of another": lambda module, h: F.dropout(h, **ON_PURPOSE),
    "no rate": lambda module, h: F.dropout(h, 0.0),
    "attention": attention(lambda module: 0.3 if module.training else 0.0),
    "no dropout": lambda module, h: h.sigmoid().amax(1, keepdim=True) * h,
}


def make(drop) -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.1), Head(drop), nn.Linear(16, 3))


def train(model, evaluate, run_dir=None) -> list[float]:
    """12 steps, an evaluation after every third one."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = None
    if run_dir is not None:
        rules = ["train_mode_in_validation"]
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    seen = []
    for step in range(12):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(X[:32]), Y[:32])
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
        if step % 3 == 2:
            seen += evaluate(model)
    if watcher is not None:
        watcher.detach()
    return seen


def validate(model) -> list[float]:
    model.eval()
    with torch.no_grad():
        scores = [model(x) for x in X[32:].split(32)]
    return [F.cross_entropy(torch.cat(scores), Y[32:]).item()]


def told(run_dir, drop, evaluate=validate) -> list[str]:
    torch.manual_seed(0)
    train(make(drop), evaluate, run_dir)
    run = td.Run(run_dir)
    names = run.names("^loop/dropout_in_evaluation")
    # Told where the next one begins; the last one, at the end, is told in the same step.
    assert all(run.scalars(name).steps.tolist() == [6, 9, 12] for name in names)
    return names


@pytest.mark.parametrize("name", UNSAID)
def test_a_function_that_is_not_told_of_the_mode_is_named(run_dir, name):
    assert told(run_dir, UNSAID[name]) == ["loop/dropout_in_evaluation/2"]


@pytest.mark.parametrize("name", SAID)
def test_what_is_said_is_meant(run_dir, name):
    assert told(run_dir, SAID[name]) == []


def sample(model) -> list[float]:
    """Monte-Carlo dropout: the same input several times."""
    model.eval()
    x = X[32:]
    with torch.no_grad():
        scores = torch.stack([model(x) for _ in range(3)]).mean(0)
    return [F.cross_entropy(scores, Y[32:]).item()]


def sample_in_batches(model) -> list[float]:
    """The same, of a loader that is gone through several times."""
    model.eval()
    with torch.no_grad():
        passes = [[model(part.clone()) for part in X[32:].split(32)] for _ in range(3)]
    scores = torch.stack([torch.cat(each) for each in passes]).mean(0)
    return [F.cross_entropy(scores, Y[32:]).item()]


def sample_with_a_part(model) -> list[float]:
    model.eval()
    model[1].train()
    with torch.no_grad():
        return [F.cross_entropy(model(X[32:]), Y[32:]).item()]


def validate_in_training_mode(model) -> list[float]:
    with torch.no_grad():
        return [F.cross_entropy(model(X[32:]), Y[32:]).item()]


def explain(model) -> list[float]:
    """Slopes by the input."""
    model.eval()
    x = X[32:].clone().requires_grad_()
    return [torch.autograd.grad(model(x).sum(), x)[0].sum().item()]


@pytest.mark.parametrize(
    "evaluate", [sample, sample_in_batches, sample_with_a_part, validate_in_training_mode, explain]
)
def test_other_evaluations_are_not_looked_at(run_dir, evaluate):
    assert told(run_dir, UNSAID["position"], evaluate) == []


def test_sampling_takes_back_what_was_told(run_dir):
    """An evaluation once, and later Monte-Carlo dropout."""
    evaluations = iter([validate, validate, sample_in_batches, validate])

    def evaluate(model):
        return next(evaluations, validate)(model)

    torch.manual_seed(0)
    train(make(UNSAID["position"]), evaluate, run_dir)
    run = td.Run(run_dir)
    assert run.names("^loop/dropout_in_evaluation")
    assert run.names("^loop/evaluation_is_sampled")


def test_evaluations_are_counted_also_those_without(run_dir):
    evaluations = iter([False, True, True, True])  # whether nothing is dropped
    torch.manual_seed(0)

    def drop(module, h):
        return h if module.training or next(evaluations, True) else F.dropout(h)

    train(make(drop), validate, run_dir)
    run = td.Run(run_dir)
    assert run.names("^loop/dropout_in_evaluation") == ["loop/dropout_in_evaluation/2"]
    assert max(run.scalars("loop/evaluations_heard").values) == 4


def test_names_of_an_inner_call_are_not_taken_for_the_outer_one(run_dir):
    def half(h, training):
        return h / 2 if training else h

    assert told(run_dir, lambda module, h: F.dropout(half(h, training=module.training)))


def test_the_line_is_that_of_the_call(run_dir):
    told(run_dir, UNSAID["channels"])
    values = td.Run(run_dir).scalars("loop/dropout_in_evaluation/2").values
    assert set(values.tolist()) == {channels.__code__.co_firstlineno + 1}


def test_it_is_found_after_one_evaluation_at_the_end(run_dir):
    torch.manual_seed(0)
    model = make(UNSAID["nothing"])
    steps = iter(range(4))
    train(model, lambda model: validate(model) if next(steps) == 3 else [], run_dir)
    assert td.Run(run_dir).names("^loop/dropout_in_evaluation") == ["loop/dropout_in_evaluation/2"]


@pytest.mark.parametrize("name", UNSAID)
def test_the_training_is_the_same_bit_for_bit(run_dir, name):
    seen = []
    for where in (None, run_dir):
        torch.manual_seed(0)
        model = make(UNSAID[name])
        losses = train(model, validate, where)
        seen.append(fingerprint(model, losses))
    assert seen[0] == seen[1]


def test_no_tensor_of_an_evaluation_is_kept(run_dir):
    kept = []

    def evaluate(model) -> list[float]:
        model.eval()
        x = X[32:].clone()
        kept.append(weakref.ref(x))
        with torch.no_grad():
            return [F.cross_entropy(model(x), Y[32:]).item()]

    train(make(functools.partial(UNSAID["position"])), evaluate, run_dir)
    gc.collect()
    assert [x() for x in kept] == [None] * 4
