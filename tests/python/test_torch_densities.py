"""Losses that are made of `log_prob` of `torch.distributions`: their sign, in real trainings."""

from __future__ import annotations

import pickle

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


def of_weight(out):
    return D.Poisson(softplus(out[:, 0]) + 0.1).log_prob(COUNTS).mean() * 1.0


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


@pytest.mark.parametrize("made", [of_counts, of_mixture, of_several, of_weight])
@pytest.mark.parametrize("is_turned", [False, True])
def test_the_sign_of_a_likelihood_is_known(made, is_turned: bool, run_dir) -> None:
    assert signs(run_dir, made, is_turned) == {-1.0 if is_turned else 1.0}


@pytest.mark.parametrize("made", [of_policy, of_reward, of_bound])
@pytest.mark.parametrize("is_turned", [False, True])
def test_of_policies_and_bounds_nothing_is_said(made, is_turned: bool, run_dir) -> None:
    assert signs(run_dir, made, is_turned) == set()


def test_of_what_the_model_draws_itself_nothing_is_said(run_dir) -> None:
    def of_its_own(out):
        there = D.Normal(out[:, 0], softplus(out[:, 1]))
        return there.log_prob(there.rsample())

    assert signs(run_dir, of_its_own, True) == set()


class Raises(torch.Tensor):
    """A tensor that nobody may look at."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if function == torch.Tensor.grad_fn.__get__:
            raise RuntimeError("looked at")
        return super().__torch_function__(function, types, args, kwargs or {})


def test_tensors_of_other_classes_are_not_looked_at(run_dir) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, capture=LOOP, supervise=False):
        for _ in range(2):
            D.Normal(torch.zeros(3).as_subclass(Raises), 1.0, validate_args=False).log_prob(
                torch.zeros(3)
            )
            model(X).sum().backward()
            optimizer.step()


def test_they_are_compiled_as_a_whole(run_dir) -> None:
    @torch.compile(fullgraph=True, backend="eager")
    def loss(mean, seen):
        return -D.Normal(mean, 1.0, validate_args=False).log_prob(seen).mean()

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, capture=LOOP, supervise=False):
        for _ in range(2):
            loss(model(X), torch.zeros(16, 1)).backward()
            optimizer.step()
    loss(model(X), torch.zeros(16, 1)).backward()


def test_functions_stay_what_they_are(run_dir) -> None:
    held = pickle.loads(pickle.dumps(D.Normal.log_prob))
    model = nn.Linear(4, 1)
    with td.watch(model, run_dir=run_dir, capture=LOOP, supervise=False):
        assert pickle.loads(pickle.dumps(held)) is D.Normal.log_prob is held
        of_mine = type("Mine", (D.Normal,), {"log_prob": D.Normal.log_prob})
    code = vars(of_mine)["log_prob"].__code__
    assert code.co_filename == D.Normal.log_prob.__code__.co_filename
    assert "_traindbg" not in str(code.co_names)


def test_nothing_stays_in_the_classes_afterwards(run_dir) -> None:
    kinds = [kind for kind in vars(D).values() if isinstance(kind, type)]
    before = [vars(kind).get("log_prob") for kind in kinds]
    signs(run_dir, of_counts, False)
    assert [vars(kind).get("log_prob") for kind in kinds] == before
