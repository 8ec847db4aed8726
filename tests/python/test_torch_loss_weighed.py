"""Errors that are written out and count some samples more than others, read from their graphs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from traindbg.hooks.torch.losses.compared import mark_returned
from traindbg.hooks.torch.losses.weighed import weighed_error

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
WEIGHTS = torch.arange(16.0)

FOUND: dict[str, Loss] = {
    "percentage": lambda p, t: ((p - t).abs() / t.abs().clamp(min=1e-6)).mean(),
    "divided first": lambda p, t: ((t - p) / t).abs().mean(),
    "squared": lambda p, t: (WEIGHTS * (p - t) ** 2).sum() / WEIGHTS.sum(),
    "by a mask": lambda p, t: ((p - t) ** 2 * (WEIGHTS > 3)).mean(),
    "by counts": lambda p, t: ((p - t) ** 2 * WEIGHTS.long()).mean(),
    "times itself": lambda p, t: ((d := p - t) * d * WEIGHTS).mean() * 100,
}
OTHERS: dict[str, Loss] = {
    "plain": lambda p, t: (p - t).abs().mean(),
    "equal weights": lambda p, t: ((p - t).abs() * torch.ones(16)).mean(),
    "no error": lambda p, t: (WEIGHTS * (p - t)).mean(),
    "of a policy": lambda p, t: -(p.log_softmax(0) * t).mean(),
    "two terms": lambda p, t: (WEIGHTS * (p - t).abs()).mean() + p.square().mean(),
    "learned weights": lambda p, t: ((p - t).abs() / (p.abs() + t.abs())).mean(),
}


def told(loss_of: Loss) -> torch.Tensor | None:
    torch.manual_seed(2)
    returned = nn.Linear(3, 1)(torch.randn(16, 3))
    mark_returned(returned, 7)
    return weighed_error(loss_of(returned.squeeze(1), torch.randn(16)), {7: returned.detach()})


@pytest.mark.parametrize("name", FOUND)
def test_errors_with_weights_are_found(name: str) -> None:
    found = told(FOUND[name])
    assert found is not None
    assert bool(found)


@pytest.mark.parametrize("name", OTHERS)
def test_what_need_not_fall_or_has_no_weights_is_not_one(name: str) -> None:
    found = told(OTHERS[name])
    assert found is None or not bool(found)


def test_weights_below_zero_may_make_anything_of_it() -> None:
    found = told(lambda p, t: ((WEIGHTS - 3) * (p - t).abs()).mean())
    assert found is not None
    assert not bool(found)
