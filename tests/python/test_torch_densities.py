"""Losses that are made of `log_prob` of `torch.distributions`: their sign, in real trainings."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import distributions as D
from torch import nn
from torch.nn.functional import softplus

import traindbg as td

X, COUNTS = torch.randn(16, 4), torch.arange(16.0)
LOOP = [{"collection": "loop", "mode": "every"}]


def of_counts(out):
    return D.NegativeBinomial(softplus(out[:, 0]) + 0.1, logits=out[:, 1]).log_prob(COUNTS)


def of_mixture(out):
    parts = D.Normal(out[:, :2], softplus(out[:, 2:4]) + 0.1)
    return D.MixtureSameFamily(D.Categorical(logits=out[:, 4:6]), parts).log_prob(COUNTS)


def of_several(out):
    return D.Independent(D.Laplace(out[:, :3], 1.0), 1).log_prob(X[:, :3])


def of_policy(out):
    return D.Categorical(logits=out).log_prob(COUNTS.long() % 6) * torch.randn(16)


def of_reward(out):
    return D.Categorical(logits=out).log_prob(COUNTS.long() % 6).mean() * -2.0


def of_bound(out):
    there = D.Normal(out[:, 0], 1.0)
    drawn = there.rsample()
    return D.Poisson(drawn.exp()).log_prob(COUNTS) - there.log_prob(drawn)


def signs(run_dir, made, is_turned: bool) -> set[float]:
    """Of a training that minimises minus `made(output)`; `is_turned`: that without the minus."""
    torch.manual_seed(0)
    model = nn.Linear(4, 6)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with td.watch(model, run_dir=run_dir, capture=LOOP, supervise=False):
        for _ in range(4):
            value = made(model(X))
            loss = value.mean() if is_turned else -value.sum() / 16
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    run = td.Run(run_dir)
    names = [name for name in run.names() if name.startswith("loop/loss_sign")]
    return {value for name in names for value in run.scalars(name).values.tolist()}


@pytest.mark.parametrize("made", [of_counts, of_mixture, of_several])
@pytest.mark.parametrize("is_turned", [False, True])
def test_the_sign_of_a_likelihood_is_known(made, is_turned: bool, run_dir) -> None:
    assert signs(run_dir, made, is_turned) == {-1.0 if is_turned else 1.0}


@pytest.mark.parametrize("made", [of_policy, of_reward, of_bound])
@pytest.mark.parametrize("is_turned", [False, True])
def test_of_policies_and_bounds_nothing_is_said(made, is_turned: bool, run_dir) -> None:
    assert signs(run_dir, made, is_turned) == set()


def test_nothing_stays_in_the_classes_afterwards(run_dir) -> None:
    kinds = [kind for kind in vars(D).values() if isinstance(kind, type)]
    before = [vars(kind).get("log_prob") for kind in kinds]
    signs(run_dir, of_counts, False)
    assert [vars(kind).get("log_prob") for kind in kinds] == before
