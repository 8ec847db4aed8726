"""Ordinary steps of several models and optimizers bypass the hooks written in Python, too."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from test_torch_hot_path import calls, fields  # noqa: F401
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.recording.recording import Recording
from traindbg.hooks.torch.steps import patches

LOSSES = {"rules": [], "collect": ["losses"]}
# What loss functions are given must not wait for the step that says whose it is.
GIVEN = {"rules": [], "collect": ["losses", "predictions"], "every": 3}


class Gan:
    """A discriminator and a generator, each with its optimizer."""

    def __init__(self) -> None:
        torch.manual_seed(5)
        self.generator = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
        self.critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
        self.of_generator = torch.optim.Adam(self.generator.parameters(), 1e-3)
        self.of_critic = torch.optim.SGD(self.critic.parameters(), 1e-2)

    def loss(self, x: torch.Tensor, value: float) -> torch.Tensor:
        out = self.critic(x)
        return F.binary_cross_entropy_with_logits(out, torch.full_like(out, value))

    def step_critic(self) -> None:
        self.of_critic.zero_grad()
        fake = self.generator(torch.randn(6, 3)).detach()
        (self.loss(torch.randn(6, 4), 1.0) + self.loss(fake, 0.0)).backward()
        self.of_critic.step()

    def step_generator(self) -> None:
        self.of_generator.zero_grad()
        self.loss(self.generator(torch.randn(6, 3)), 1.0).backward()
        self.of_generator.step()


def in_turns(gan: Gan) -> None:
    for _ in range(12):
        gan.step_critic()
        gan.step_generator()


def generator_first(gan: Gan) -> None:
    for _ in range(8):
        gan.step_generator()
        for _ in range(5):
            gan.step_critic()


def with_steps_in_between_left_out(gan: Gan) -> None:
    for number in range(20):
        gan.step_critic()
        if number % 3:
            gan.step_generator()


def with_another_that_takes_over(gan: Gan) -> None:
    in_turns(gan)
    for _ in range(110):  # after 100 of its steps it drives
        gan.step_generator()


def with_one_pass_for_both(gan: Gan) -> None:
    in_turns(gan)  # it is known then what their losses are called
    for number in range(12):
        gan.of_critic.zero_grad()
        gan.of_generator.zero_grad()
        gan.loss(gan.generator(torch.randn(6, 3)), 1.0).backward()
        for optimizer in (gan.of_critic, gan.of_generator)[:: 1 if number % 2 else -1]:
            optimizer.step()


def with_a_new_group(gan: Gan) -> None:
    in_turns(gan)
    gan.of_generator.add_param_group({"params": [nn.Parameter(torch.ones(2))]})
    in_turns(gan)


def with_a_third(gan: Gan) -> None:
    in_turns(gan)
    other = torch.optim.SGD(gan.generator[0].parameters(), lr=1e-4)
    for _ in range(6):
        gan.step_critic()
        gan.loss(gan.generator(torch.randn(6, 3)), 1.0).backward()
        other.step()
        gan.step_generator()


def with_an_evaluation(gan: Gan) -> None:
    for _ in range(3):
        in_turns(gan)
        gan.critic.eval()
        gan.generator.eval()
        with torch.no_grad():
            gan.loss(torch.randn(6, 4), 1.0)
        gan.critic.train()
        gan.generator.train()


def with_a_closure(gan: Gan) -> None:
    gan.of_generator = torch.optim.LBFGS(gan.generator.parameters(), lr=0.1, max_iter=3)

    def computed() -> torch.Tensor:
        gan.of_generator.zero_grad()
        loss = gan.loss(gan.generator(torch.ones(6, 3)), 1.0)
        loss.backward()
        return loss

    for _ in range(6):
        gan.step_critic()
        gan.of_generator.step(computed)


def step_both(gan: Gan, *optimizers: torch.optim.Optimizer) -> None:
    gan.of_critic.zero_grad()
    gan.of_generator.zero_grad()
    gan.loss(gan.generator(torch.randn(6, 3)), 1.0).backward()
    for optimizer in optimizers:
        optimizer.step()


def by_one_pass_from_the_beginning(gan: Gan) -> None:
    for _ in range(12):
        step_both(gan, gan.of_critic, gan.of_generator)


def by_one_pass_and_the_last_one_now_and_then(gan: Gan) -> None:
    for number in range(20):
        last = [gan.of_generator] if number < 5 or number % 3 == 0 else []
        step_both(gan, gan.of_critic, *last)


def by_one_pass_with_a_third(gan: Gan) -> None:
    first = torch.optim.SGD(gan.generator[0].parameters(), lr=1e-4)
    gan.of_generator = torch.optim.Adam(gan.generator[2].parameters(), 1e-3)
    for _ in range(9):
        step_both(gan, gan.of_critic, first, gan.of_generator)


TRAININGS = [
    in_turns,
    generator_first,
    with_steps_in_between_left_out,
    with_another_that_takes_over,
    with_one_pass_for_both,
    with_a_new_group,
    with_a_third,
    with_an_evaluation,
    with_a_closure,
    by_one_pass_from_the_beginning,
    by_one_pass_and_the_last_one_now_and_then,
    by_one_pass_with_a_third,
]


def record(train, directory, watched, **settings) -> tuple[list[tuple], torch.Tensor]:
    """All that a run holds of its steps, its events, and the state of random numbers."""
    gan = Gan()
    settings = {"run_dir": directory, "supervise": False, **settings}
    both = nn.ModuleDict({"critic": gan.critic, "generator": gan.generator})
    if watched == "one model":
        td.watch(both, **settings)
    else:
        td.watch(gan.critic, gan.of_critic, **settings)
        if watched == "two models":
            td.watch(gan.generator, gan.of_generator)
    recording = patches.state.listener
    train(gan)
    state = torch.get_rng_state()
    recording.close()
    assert patches.state.listener is None
    run = td.Run(directory)
    return [
        (
            step.mode,
            step.step,
            {name: fields(value) for name, value in step.scalars.items()},
            {name: fields(value) for name, value in step.tensors.items()},
        )
        for mode in ("train", "eval")
        for step in run.iter_steps(mode)
    ] + [(event["kind"], str(event["data"])) for event in run.events], state


@pytest.mark.parametrize(
    ("watched", "settings"),
    [
        ("two models", LOSSES),
        ("two models", GIVEN),
        ("two models", {}),
        ("one model", GIVEN),
        ("one of two", GIVEN),
    ],
    ids=["two models", "two models, given", "two models, default", "one model", "one of two"],
)
@pytest.mark.parametrize("train", TRAININGS)
def test_it_records_what_the_hooks_in_python_record(
    train, watched, settings, tmp_path, monkeypatch
) -> None:
    hot, random = record(train, tmp_path / "hot", watched, **settings)
    monkeypatch.setattr(Recording, "_arm", lambda self: None)
    in_python, random_there = record(train, tmp_path / "python", watched, **settings)
    assert hot == in_python
    assert len(hot) >= 3
    assert torch.equal(random, random_there)


@pytest.mark.parametrize("watched", ["two models", "one model", "one of two"])
def test_their_ordinary_steps_reach_no_hook_in_python(tmp_path, calls, watched) -> None:  # noqa: F811
    steps, _ = record(in_turns, tmp_path / "run", watched, **LOSSES)
    assert len([step for step in steps if step[0] == "train"]) >= 12
    # Until it is known of each optimizer, and of each call of the loss, what an ordinary step is.
    assert max(calls.values()) <= 8, calls


def test_nothing_of_them_is_kept_alive(tmp_path) -> None:
    gan = Gan()
    watchers = [
        td.watch(gan.critic, run_dir=tmp_path / "run", supervise=False, **LOSSES),
        td.watch(gan.generator),
    ]
    in_turns(gan)
    parts = [gan.critic, gan.generator, gan.of_critic, gan.of_generator, watchers[0]._recording]
    alive = [weakref.ref(part) for part in parts]
    for watcher in watchers:
        watcher.detach()
    del gan, parts, watcher, watchers
    gc.collect()
    assert [reference() for reference in alive] == [None] * 5


def test_a_model_that_is_gone_leaves_the_others_ordinary(tmp_path, calls) -> None:  # noqa: F811
    gan, other = Gan(), Gan()
    with td.watch(gan.critic, run_dir=tmp_path / "run", supervise=False, **LOSSES):
        td.watch(other.critic)
        in_turns(gan)
        before = sum(calls.values())
        del other
        gc.collect()
        gan.step_critic()
        gan.step_critic()
        assert sum(calls.values()) - before <= 4
