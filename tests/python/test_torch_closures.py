"""Optimizers that are given a closure, which computes the gradients inside of their step."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings

STEPS = 6
EVERYTHING = ("weights", "biases", "gradients", "outputs", "weight_updates")


def train(closures: str, run_dir=None) -> list[torch.Tensor]:
    """`closures`: none, positional, keyword. The parameters after the training."""
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    if run_dir is not None:
        td.watch(model, run_dir=run_dir, rules=[], collect=EVERYTHING, supervise=False)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(torch.randn(8, 6)), torch.randint(0, 3, (8,)))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        return loss

    for _ in range(STEPS):
        if closures == "none":
            closure()
            optimizer.step()
        elif closures == "positional":
            assert optimizer.step(closure).numel() == 1
        else:
            assert optimizer.step(closure=closure).numel() == 1
    return [parameter.detach() for parameter in model.parameters()]


@pytest.mark.parametrize("closures", ["positional", "keyword"])
def test_gradients_are_those_that_the_closure_computed(closures, tmp_path):
    plain = train("none", tmp_path / "plain")
    recordings.current.close()
    given = train(closures, tmp_path / "given")
    recordings.current.close()
    assert all(torch.equal(a, b) for a, b in zip(plain, given, strict=True))

    first, second = td.Run(tmp_path / "plain"), td.Run(tmp_path / "given")
    assert first.names() == second.names()
    assert second.steps().tolist() == list(range(STEPS))
    for name in first.names():
        one, other = first[name].series(), second[name].series()
        assert one.steps.tolist() == other.steps.tolist(), name
        assert one.values.tolist() == other.values.tolist(), name
    assert first["gradient/0.weight"].steps().size == STEPS


@pytest.mark.parametrize("closures", ["positional", "keyword"])
def test_a_closure_trains_as_without_us(closures, tmp_path):
    without = train(closures)
    watched = train(closures, tmp_path / "run")
    assert all(torch.equal(a, b) for a, b in zip(without, watched, strict=True))


def test_of_several_calls_in_one_step_the_first_is_kept(run_dir):
    torch.manual_seed(5)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    inputs, wanted = torch.randn(16, 4), torch.randn(16, 1)
    norms: list[float] = []

    def closure():
        optimizer.zero_grad()
        loss = F.mse_loss(model(inputs), wanted)
        loss.backward()
        norms.append(model.weight.grad.norm().item())
        return loss

    with td.watch(model, run_dir=run_dir, rules=[], collect="gradients", supervise=False):
        firsts = []
        for _ in range(3):
            firsts.append(len(norms))
            optimizer.step(closure)
    assert len(norms) > 3
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0, 1, 2]
    assert run["gradient/weight"].values().tolist() == pytest.approx(
        [norms[first] for first in firsts], rel=1e-6
    )


def test_an_exception_of_the_closure_is_the_trainings_own(run_dir):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def closure():
        raise ValueError("bad batch")

    with td.watch(model, run_dir=run_dir, rules=[], collect="gradients", supervise=False) as w:
        with pytest.raises(ValueError, match="bad batch"):
            optimizer.step(closure)
        assert w.is_active
