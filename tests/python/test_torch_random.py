"""Evaluations that set random numbers back, and those that only look like it."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.data.random_numbers import states

X, Y = torch.randn(400, 6), torch.randint(0, 3, (400,))


def train(run_dir, draw, evaluate, layers=()) -> list[float]:
    """20 steps, an evaluation before every fourth one."""
    model = nn.Sequential(nn.Linear(6, 16), *layers, nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["repeated_batch"]):
        for step in range(20):
            if step % 4 == 0:
                model.eval()
                with torch.no_grad():
                    rows = evaluate()
                    F.cross_entropy(model(X[rows]), Y[rows])
                model.train()
            rows = draw(step)
            optimizer.zero_grad()
            F.cross_entropy(model(X[rows]), Y[rows]).backward()
            optimizer.step()
    return td.Run(run_dir).scalars("loop/random_numbers_set_back").values.tolist()


def seeded() -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randint(0, 400, (50,))


def test_a_seed_set_in_evaluations_is_counted(run_dir):
    found = train(run_dir, lambda step: torch.randint(0, 400, (32,)), seeded)
    assert found == [0, 1, 2, 3, 4]  # the first evaluation has none before it


@pytest.mark.parametrize("name", ["numpy", "random"])
def test_generators_of_others_count_too(run_dir, name):
    def evaluate():
        np.random.seed(5) if name == "numpy" else random.seed(5)
        return torch.arange(40)

    def draw(step):
        if name == "numpy":
            return torch.from_numpy(np.random.randint(0, 400, 32))
        return torch.tensor(random.sample(range(400), 32))

    assert train(run_dir, draw, evaluate) == [0, 1, 2, 3, 4]


def test_masks_of_dropout_that_come_again_are_enough(run_dir):
    found = train(run_dir, lambda step: torch.arange(32), seeded, [nn.Dropout(0.5)])
    assert found == [0, 1, 2, 3, 4]


def test_a_generator_of_its_own_and_a_fork_set_nothing_back(run_dir):
    def of_its_own():
        return torch.randint(0, 400, (50,), generator=torch.Generator().manual_seed(1))

    def forked():
        with torch.random.fork_rng():
            return seeded()

    for name, evaluate in [("own", of_its_own), ("fork", forked)]:
        found = train(run_dir / name, lambda step: torch.randint(0, 400, (32,)), evaluate)
        assert found == [0, 0, 0, 0, 0]


def test_a_training_that_draws_nothing_loses_nothing(run_dir):
    found = train(run_dir, lambda step: torch.arange(step, step + 32), seeded)
    assert found == [0, 0, 0, 0, 0]


def test_a_generator_that_nothing_is_drawn_from_any_more_is_not_set_back(run_dir):
    """Its state is the same after each evaluation, as nobody touched it."""

    def draw(step):
        if step < 8:
            random.random()
        return torch.randint(0, 400, (32,))

    found = train(run_dir, draw, lambda: torch.arange(40))
    assert found == [0, 0, 0, 0, 0]


@pytest.mark.parametrize("name", ["MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64"])
def test_another_generator_behind_numpys_functions(name):
    """Also one that draws several numbers ahead; however arrays are printed."""
    before, printed = np.random.get_bit_generator(), np.get_printoptions()
    try:
        np.set_printoptions(threshold=1, edgeitems=1)
        np.random.set_bit_generator(getattr(np.random, name)(3))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            known = [states()["numpy.random"]]
        for _ in range(4):
            np.random.rand()
            known.append(states()["numpy.random"])
        assert len(set(known)) == 5
        np.random.set_bit_generator(getattr(np.random, name)(3))
        assert states()["numpy.random"] == known[0]
    finally:
        np.random.set_bit_generator(before)
        np.set_printoptions(**printed)


def test_states_are_read_and_not_changed():
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tobytes()
    assert states() == states()
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (random.getstate(), np.random.get_state()[1].tobytes())
    known = states()
    torch.rand(1), random.random(), np.random.rand()
    assert all(known[name] != now for name, now in states().items())
