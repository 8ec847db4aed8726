"""Agents: how their programs are known, and what is looked at where they act."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg.hooks.torch.evaluations.unended import Attention, Unended
from traindbg.hooks.torch.losses.discounted import discounts_rewards


@pytest.mark.parametrize(
    ("text", "is_agent"),
    [
        ("target = rewards + gamma * following * (1 - dones)", True),
        ("for r in rewards: R = r + args.gamma * R", True),
        ("R = r + args.gamma * R", False),
        ("h = r + self.gamma * self.layer(r)", False),
        ("delta = self.rewards[t] + self.gamma * after * goes_on - self.values[t]", True),
        ("target = (1 - done) * discount * best + batch.reward.flatten()", True),
        ("scheduler = StepLR(optimizer, step_size=1, gamma=0.7)", False),
        ("kernel = torch.exp(-gamma * distance) + noise", False),
        ("loss = (1 - p) ** gamma * ce + reward_free", False),
        ("total = rewards + bonus", False),
    ],
)
def test_a_program_that_adds_up_discounted_rewards_teaches_an_agent(
    text: str, is_agent: bool
) -> None:
    assert discounts_rewards(ast.parse(text)) is is_agent


def test_of_passes_that_no_evaluation_ends_the_first_are_looked_at_and_a_few_later() -> None:
    one = Unended()
    passes = [one.attention(0, 7) for _ in range(100)]
    assert passes == [Attention.ALL] * 32 + [Attention.RETURN] * 68, (
        "a loss may yet be made of them"
    )
    assert one.attention(1, 7) is Attention.ALL, "one has ended"
    many = Unended()
    each = [many.attention(0, step) for step in range(1000)]
    assert each[:32] == [Attention.ALL] * 32
    assert set(each) == {Attention.ALL, Attention.NONE}
    assert 50 <= each[32:].count(Attention.ALL) <= 70


def test_what_an_agent_does_is_heard_until_there_was_enough_of_it(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    heard = []
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False) as watcher:
        for step in range(170):
            if step >= 110:
                with torch.no_grad():
                    armed = []
                    for _ in range(40):
                        model(torch.randn(1, 4))
                        armed.append(watcher._observer.armed)
                heard.append((armed[0], armed[-1]))
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
    assert (True, False) in heard, "at steps of which nothing is due"


def test_a_user_who_asks_for_evaluations_gets_what_an_agent_does(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    capture = [{"collection": ["inputs"], "mode": "eval", "every": 1}]
    with td.watch(
        model, optimizer, run_dir=tmp_path / "run", supervise=False, capture=capture
    ) as watcher:
        for step in range(60):
            with torch.no_grad():
                model(torch.full((1, 4), float(step)))
            assert not watcher._observer._sink.has_enough
            optimizer.zero_grad()
            model(torch.randn(8, 4)).square().mean().backward()
            optimizer.step()
