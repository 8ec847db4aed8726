"""Models whose own methods are called, never they themselves: a part's inputs are the model's."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.evaluations import stand_in as stand_ins

STEPS = 7


class Classifier(nn.Module):
    """The time's embedding comes first; what is given to `body` is larger."""

    def __init__(self) -> None:
        super().__init__()
        self.time = nn.Linear(1, 16)
        self.body = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
        self.head = nn.Linear(16, 3)

    def logits(self, x, words=False):
        hidden = self.time(torch.full((len(x), 1), 7000.0)) * 1e-4
        return self.head((self.body(input=x) if words else self.body(x)) + hidden)

    def loss(self, x, labels, words=False):
        return F.cross_entropy(self.logits(x, words), labels)


def batch(step, scale=1.0):
    generator = torch.Generator().manual_seed(step)
    labels = torch.randint(3, (10,), generator=generator)
    return torch.randn(10, 8, generator=generator) * scale, labels


def train(model, words=False, evaluate=True, steps=STEPS):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        model.train()
        optimizer.zero_grad()
        model.loss(*batch(step), words).backward()
        optimizer.step()
        if evaluate:
            model.eval()
            with torch.no_grad():
                for part in range(2):
                    x, labels = batch(100 + 2 * step + part, scale=50.0)
                    F.cross_entropy(model.logits(x), labels)


def maxima(run, name):
    """The largest value of the input in each step of the training."""
    steps = run[name].steps().tolist()
    return {step: run.step(step).tensors[name].statistics.max for step in steps}


@pytest.mark.parametrize("words", [False, True])
def test_the_data_are_the_inputs_and_evaluations_are_none_of_them(words, run_dir):
    torch.manual_seed(0)
    model = Classifier()
    with td.watch(model, run_dir=run_dir, every=1):
        train(model, words=words, evaluate=not words)
    run = td.Run(run_dir)
    assert run.names("^input/") == ["input/body.0"]
    seen = maxima(run, "input/body.0")
    assert list(seen) == list(range(4, STEPS)), "the first step is not seen, three are looked at"
    for step, value in seen.items():
        assert value == pytest.approx(float(batch(step)[0].max()))
    assert run["input/body.0"].steps("eval").size == 0


def test_what_parts_return_in_evaluations_is_none_of_the_training(run_dir):
    torch.manual_seed(0)
    model = Classifier()
    with td.watch(model, run_dir=run_dir, every=1, collect=("outputs", "inputs")):
        train(model)
    run = td.Run(run_dir)
    largest = run["output/head"].values("max").max()
    assert largest < 10, "an evaluation's inputs are fifty times as large"


def test_the_training_is_the_same_and_nothing_is_kept(run_dir):
    def result(watch):
        torch.manual_seed(0)
        model = Classifier()
        if watch:
            with td.watch(model, run_dir=run_dir):
                train(model)
        else:
            train(model)
        assert not model._forward_hooks
        return [*model.state_dict().values(), torch.get_rng_state()], weakref.ref(model)

    (watched, alive), (without, _) = result(True), result(False)
    assert all(torch.equal(a, b) for a, b in zip(watched, without, strict=True))
    gc.collect()
    assert alive() is None


class Pair(nn.Module):
    """A generator and a discriminator in one, which takes the made ones first."""

    def __init__(self) -> None:
        super().__init__()
        self.make = nn.Linear(2, 8)
        self.judge = nn.Linear(8, 1)


@pytest.mark.parametrize("kind", ["twice", "with gradients", "always the same", "no parameters"])
def test_what_is_no_stand_in(kind, run_dir):
    torch.manual_seed(0)
    pair, flat = Pair(), nn.Flatten()
    pair.flat = flat
    optimizer = torch.optim.SGD(pair.parameters(), lr=1e-3)
    grid = torch.randn(10, 8)
    with td.watch(pair, run_dir=run_dir, every=1):
        for step in range(STEPS):
            optimizer.zero_grad()
            x = batch(step)[0]
            loss = pair.judge.weight.square().sum()
            if kind == "twice":
                loss = loss + pair.judge(x).mean() - pair.judge(x + 1).mean()
            elif kind == "with gradients":
                loss = loss + pair.judge(x * pair.judge.weight).mean()
            elif kind == "always the same":
                loss = loss + pair.judge(grid).mean()
            else:
                loss = loss + (flat(x) @ pair.judge.weight.T).mean()
            loss.backward()
            optimizer.step()
    assert td.Run(run_dir).names("^input/") == []


class Feed:
    """Rows of the data; one that stands still takes the same ones each time."""

    def __init__(self, stands_still):
        self.rows = torch.randn(40, 8), torch.randint(3, (40,))
        self.cursor, self.stands_still = 0, stands_still

    def next(self):
        rows = torch.arange(self.cursor, self.cursor + 10)
        self.cursor = 0 if self.stands_still else (self.cursor + 10) % 40
        return tuple(each[rows] for each in self.rows)


def train_by(feed, loss_of, model, run_dir):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, every=1):
        for _ in range(STEPS):
            optimizer.zero_grad()
            loss_of(*feed.next()).backward()
            optimizer.step()
    return td.Run(run_dir)


@pytest.mark.parametrize("stands_still", [True, False])
def test_the_data_of_a_feed_that_stands_still_are_the_inputs(stands_still, run_dir):
    torch.manual_seed(0)
    model = Classifier()
    run = train_by(Feed(stands_still), model.loss, model, run_dir)
    assert run.names("^input/") == ["input/body.0"]
    assert (len(set(maxima(run, "input/body.0").values())) == 1) == stands_still


@pytest.mark.parametrize("kind", ["something changes", "words", "no table"])
def test_what_stands_still_beside_data_is_no_stand_in(kind, run_dir):
    torch.manual_seed(0)
    pair, scale = Pair(), nn.Flatten()
    pair.scale = scale
    pair.words = nn.Embedding(40, 8)

    def loss_of(x, labels):
        if kind == "words":
            return pair.words(labels).mean()
        if kind == "no table":
            return pair.judge(x[0].clone()).mean()
        # The data go into a part without parameters, twice, and a grid is made anew each time.
        features = scale(torch.randn(10, 8)) + scale(x)
        return (pair.judge(torch.linspace(0, 1, 80).reshape(10, 8)).T @ features).mean()

    assert train_by(Feed(stands_still=True), loss_of, pair, run_dir).names("^input/") == []


def test_inputs_of_the_model_in_evaluations_are_others(run_dir):
    """A frozen body is computed with apart; evaluations call the model."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 3))
    optimizer = torch.optim.SGD(net[1].parameters(), lr=0.1)
    with td.watch(net, run_dir=run_dir, every=1):
        for step in range(STEPS):
            net.train()
            x, labels = batch(step)
            with torch.no_grad():
                features = net[0](x)
            optimizer.zero_grad()
            F.cross_entropy(net[1](features), labels).backward()
            optimizer.step()
            net.eval()
            with torch.no_grad():
                F.cross_entropy(net(x), labels)
    run = td.Run(run_dir)
    assert run["input/1.0"].shape == (10, 4)
    assert run["input/1.0"].steps("eval").size == 0
    assert run["input/0"].shape == (10, 8)
    assert run["input/0"].steps().size == 0
    for name in run.names("loop/rows_evaluated_trained"):
        assert set(run.scalars(name, "eval").values.tolist()) == {0}


def test_a_part_that_is_traced_or_given_odd_tensors_harms_nothing(run_dir):
    torch.manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, every=1):
        for step in range(STEPS):
            x, labels = batch(step)
            torch.jit.trace(model.body, x)
            torch.func.vmap(model.body)(x)
            (model.body[0].weight @ x.T.to_sparse()).sum()
            optimizer.zero_grad()
            model.loss(x, labels).backward()
            optimizer.step()
    assert td.Run(run_dir)["output/head"].steps().size == STEPS - 1


@pytest.mark.parametrize("is_new", [True, False])
def test_of_a_device_it_is_known_whether_the_tensor_is_the_same(is_new, run_dir, monkeypatch):
    """Where values would be waited for. A tensor that is gone may leave its id to another."""
    monkeypatch.setattr(stand_ins, "may_read", lambda tensor: False)
    torch.manual_seed(0)
    pair = Pair()
    optimizer = torch.optim.SGD(pair.parameters(), lr=1e-3)
    grid = torch.randn(10, 8)
    with td.watch(pair, run_dir=run_dir, every=1):
        for step in range(STEPS):
            optimizer.zero_grad()
            pair.judge(batch(step)[0] if is_new else grid).mean().backward()
            optimizer.step()
    assert td.Run(run_dir).names("^input/") == (["input/judge.0"] if is_new else [])
