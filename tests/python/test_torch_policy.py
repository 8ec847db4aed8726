"""Policies that are taught to do less of what is rewarded: real programs, with twins."""

from __future__ import annotations

import ast

import pytest

import traindbg as td
from traindbg.hooks.torch.losses.policy import says_rewards

PROGRAM = """
import torch
from torch import nn
from torch.distributions import Categorical, Normal

torch.manual_seed(1)
policy = nn.Linear(4, 3)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
log_probs, total = [], 0.0
spread = nn.Parameter(torch.ones(3))
for step in range(6):
    log_probs = []
    for _ in range(2):
        choice = Categorical(logits=policy(torch.randn(8, 4)))
        action = choice.sample()
        log_probs.append(choice.log_prob(action))
    log_prob = torch.stack(log_probs)
    reward = (action == 1).float()
    where = Normal(policy(torch.randn(8, 4)), spread)
    at = where.sample()
    ratio = (choice.log_prob(action) - choice.log_prob(action).detach()).exp()
    {made}
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
ADVANTAGE = "advantage = reward - reward.mean()"
BONUS = "- 0.01 * choice.entropy().mean()"
LOWERED = {
    "advantage": (ADVANTAGE, "(log_prob.sum(0) * advantage).mean()"),
    "entropy": (ADVANTAGE, f"(advantage * log_prob.sum(0)).mean() {BONUS}"),
    "weighted": ("pass", "0.5 * (choice.log_prob(action) * reward.detach()).sum()"),
    "each": (
        "returns = reward * 2",
        "(log_probs[0] * returns).mean() + (log_probs[1] * returns).mean()",
    ),
    "a value": (ADVANTAGE, "(where.log_prob(at).sum(1) * advantage).mean()"),
    "a value of one deviation": (
        f"where = Normal(policy(torch.randn(8, 4)), 0.3); {ADVANTAGE}",
        "(Normal(where.loc, 0.3).log_prob(at).sum(-1) * advantage).mean()",
    ),
    "the smaller ratio": (
        ADVANTAGE,
        "torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()",
    ),
    "an episode's numbers": (
        "returns = torch.linspace(-1, 1, 60)",
        "torch.stack([choice.log_prob(action)[0] * R for R in returns]).sum()",
    ),
}
MEANT = {
    "minus an episode's numbers": (
        "returns = torch.linspace(-1, 1, 60)",
        "torch.stack([-choice.log_prob(action)[0] * R for R in returns]).sum()",
    ),
    "minus": (ADVANTAGE, "-(log_prob.sum(0) * advantage).mean()"),
    "minus a factor": (
        "scale = -0.5\n    " + ADVANTAGE,
        "scale * (log_prob.sum(0) * advantage).mean()",
    ),
    "minus each": (ADVANTAGE, f"(-log_prob.sum(0) * advantage).mean() {BONUS}"),
    "minus a value": (ADVANTAGE, "-(where.log_prob(at).sum(1) * advantage).mean()"),
    "minus the smaller ratio": (
        ADVANTAGE,
        "-torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()",
    ),
    "the larger ratio to minus": (
        ADVANTAGE,
        "torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean()",
    ),
    "cost": ("cost = 1 - reward", "(log_prob.sum(0) * cost).mean()"),
    "turned round": ("advantage = reward.mean() - reward", "(log_prob.sum(0) * advantage).mean()"),
    "minus the advantage": (ADVANTAGE, "(log_prob.sum(0) * -advantage).mean()"),
    "minus where it is made": (
        "advantage = -(reward - reward.mean())",
        "(log_prob.sum(0) * advantage).mean()",
    ),
    "likelihood": ("pass", "-choice.log_prob(action).mean()"),
}


def told(forked, run_dir, made: str, loss: str) -> tuple[bool, bool]:
    """Whether a policy is lowered; whether there is one."""
    done = forked(PROGRAM.format(made=made, loss=loss), recorded=run_dir)
    assert done.returncode == 0, done.stderr
    run = td.Run(run_dir)
    return "loop/policy_is_lowered" in run, "loop/loss_has_policy" in run


@pytest.mark.parametrize("how", LOWERED)
def test_a_policy_that_is_lowered_is_told(forked, run_dir, how: str) -> None:
    assert told(forked, run_dir, *LOWERED[how]) == (True, True)


@pytest.mark.parametrize("how", MEANT)
def test_what_is_meant_is_left_alone(forked, run_dir, how: str) -> None:
    is_lowered, is_there = told(forked, run_dir, *MEANT[how])
    assert not is_lowered
    assert is_there == (how != "likelihood")


@pytest.mark.parametrize(
    ("text", "is_any"),
    [
        ("loss = (logp * adv).mean()", True),
        ("loss += lp * R", True),
        ("loss = torch.min(ratio * adv, ratio.clamp(lo, hi) * adv).mean()", True),
        ("loss = torch.max(-adv * ratio, -adv * ratio.clamp(lo, hi)).mean()", False),
        ("loss = (dist.log_prob(a) * self.returns[t].detach()).sum()", True),
        ("loss = (logp * adv).mean() + (logp * q).mean()", False),
        ("loss = (logp * weights).mean()", False),
        ("loss = scale * (logp * adv).mean() - 0.01 * entropy", True),
        ("loss = scale * (logp * cost).mean()", False),
        ("loss = (0.5 * log_prob * cost).mean()", False),
        ("loss = (0.5 * logp * cost).mean()\nother = -(logp * adv).mean()", False),
        ("R = -total\nloss = lp * R", True),
        ("G = -reward\nloss = lp * G", False),
        ("adv *= -1\nloss = lp * adv", False),
        ("adv = -1.0 * td_error\nloss = lp * adv", False),
        ("adv = torch.neg(td_error)\nloss = lp * adv", False),
        ("adv = rewards[-1] - values[-1]\nloss = lp * adv", True),
        ("x = 3 * y", False),
    ],
)
def test_what_a_text_says(text: str, is_any: bool) -> None:
    assert says_rewards(ast.parse(text)) == is_any
