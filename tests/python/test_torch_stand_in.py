"""Models whose own methods are called, never they themselves: a part's inputs are the model's."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

STEPS = 6


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


def maxima(run, mode, name="input/0"):
    """The largest value of the input in each step of a mode."""
    steps = run[name].steps(mode).tolist()
    return {step: run.step(step, mode).tensors[name].statistics.max for step in steps}


@pytest.mark.parametrize("words", [False, True])
def test_the_data_are_the_inputs_of_training_and_evaluation(words, run_dir):
    torch.manual_seed(0)
    model = Classifier()
    with td.watch(model, run_dir=run_dir, every=1):
        train(model, words=words, evaluate=not words)
    run = td.Run(run_dir)
    assert run.names("^input/") == ["input/0"]
    seen = maxima(run, "train")
    assert list(seen) == list(range(2, STEPS)), "the first step is not seen, the second one chooses"
    for step, value in seen.items():
        assert value == pytest.approx(float(batch(step)[0].max()))
    if not words:
        evaluated = list(maxima(run, "eval").values())
        assert len(evaluated) >= 2 * (STEPS - 3)
        given = [float(batch(100 + part, scale=50.0)[0].max()) for part in range(2 * STEPS)]
        assert evaluated == pytest.approx(given[-len(evaluated) :])


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


def test_of_a_part_that_is_called_twice_the_first_call_counts(run_dir):
    torch.manual_seed(0)
    pair = Pair()
    optimizer = torch.optim.SGD(pair.parameters(), lr=1e-3)
    with td.watch(pair, run_dir=run_dir, every=1):
        for step in range(STEPS):
            optimizer.zero_grad()
            real, fake = pair.judge(batch(step)[0]), pair.judge(pair.make(torch.randn(10, 2)))
            (fake.mean() - real.mean()).backward()
            optimizer.step()
    seen = maxima(td.Run(run_dir), "train")
    for step, value in seen.items():
        assert value == pytest.approx(float(batch(step)[0].max()))
    assert len(seen) == STEPS - 2


def test_a_part_that_is_given_what_gradients_go_through_is_no_input(run_dir):
    torch.manual_seed(0)
    pair = Pair()
    optimizer = torch.optim.SGD(pair.parameters(), lr=1e-3)
    with td.watch(pair, run_dir=run_dir, every=1):
        for _ in range(STEPS):
            optimizer.zero_grad()
            pair.judge(pair.make(torch.full((10, 2), 3.0))).mean().backward()
            optimizer.step()
    assert set(maxima(td.Run(run_dir), "train").values()) == {3.0}


@pytest.mark.parametrize(
    ("begins", "of_part", "of_model"), [(2, "0", "model.0"), (0, "part.0", "0")]
)
def test_inputs_of_the_model_in_evaluations_are_others(begins, of_part, of_model, run_dir):
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
            if step >= begins:
                with torch.no_grad():
                    F.cross_entropy(net(x), labels)
    run = td.Run(run_dir)
    assert run[f"input/{of_part}"].shape == (10, 4)
    assert len(maxima(run, "train", f"input/{of_part}")) == STEPS - 2
    evaluated = run[f"input/{of_model}"]
    assert evaluated.shape == (10, 8)
    assert evaluated.steps("eval").size > 0
    for name in run.names("loop/rows_evaluated_trained"):
        assert set(run.scalars(name, "eval").values.tolist()) == {0}
