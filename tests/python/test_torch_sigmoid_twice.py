"""A sigmoid before a loss that computes one itself, told by the graphs of losses."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.distributions import Bernoulli
from torch.nn import functional as F

from traindbg.hooks.torch.base.parameters import Owner
from traindbg.hooks.torch.losses.graph import look_at_graph
from traindbg.hooks.torch.losses.sigmoid_twice import (
    BEFORE_LOGARITHM,
    BEFORE_LOGITS,
    BEFORE_SOFTMAX,
)

ROWS, LABELS = 5, 4
torch.manual_seed(0)
NET = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, LABELS))
X, Y, CLASSES = torch.randn(ROWS, 6), torch.ones(ROWS, LABELS), torch.tensor([0, 3, 1, 2, 1])
with_logits = F.binary_cross_entropy_with_logits


def told_of(loss: torch.Tensor) -> tuple[str, str] | None:
    owners = {
        id(parameter): Owner(f"{path}.{name}", path, type(module).__name__, 0)
        for path, module in NET.named_modules()
        for name, parameter in module.named_parameters(recurse=False)
    }
    graph = look_at_graph(loss, owners)
    assert graph is not None
    return graph.sigmoid_twice


def test_before_a_loss_with_logits() -> None:
    for given in (
        NET(X).sigmoid(),
        torch.sigmoid(NET(X)).view(-1).view(ROWS, LABELS),
        nn.Sigmoid()(NET(X)).clamp(1e-6, 1 - 1e-6),
        torch.cat([NET(X[:2]).sigmoid(), NET(X[2:]).sigmoid()]),
        torch.stack([NET(row).sigmoid() for row in X]),
        NET(X).t().sigmoid().t(),
        NET(X).sigmoid().double().float()[torch.arange(ROWS)],
    ):
        assert told_of(with_logits(given, Y)) == ("2", BEFORE_LOGITS)
        assert told_of(with_logits(given, Y, pos_weight=torch.full((LABELS,), 2.0))) == (
            "2",
            BEFORE_LOGITS,
        )
        assert told_of(2 * with_logits(given, Y, reduction="none").mean() + 1) == (
            "2",
            BEFORE_LOGITS,
        )
    assert told_of(with_logits(NET(X).sigmoid().amax(1), Y[:, 0])) == ("2", BEFORE_LOGITS)
    assert told_of(with_logits(NET(X).sigmoid().mean(1), Y[:, 0])) == ("2", BEFORE_LOGITS)
    assert told_of(-Bernoulli(logits=NET(X).sigmoid()).log_prob(Y).mean()) == ("2", BEFORE_LOGITS)


def test_of_products() -> None:
    left, right = NET(X), NET(X.flip(0))
    assert told_of(with_logits((left * right).sum(1).sigmoid(), Y[:, 0])) == ("", BEFORE_LOGITS)


def test_before_a_cross_entropy_of_classes() -> None:
    assert told_of(F.cross_entropy(NET(X).sigmoid(), CLASSES)) == ("2", BEFORE_SOFTMAX)
    assert told_of(F.nll_loss(F.log_softmax(NET(X).sigmoid(), 1), CLASSES)) == ("2", BEFORE_SOFTMAX)


def test_before_the_logarithm_of_a_sigmoid() -> None:
    gate = NET(X).sigmoid()
    p = gate.sigmoid()
    by_hand = 1 / (1 + torch.exp(-gate))
    clamped = by_hand.flatten(1).clamp(1e-6, 1 - 1e-6)
    for loss in (
        -(Y * clamped.log() + (1 - Y) * (1 - clamped).log()).mean(),
        -(Y * (p + 1e-8).log()).sum(),
        -(1 - p + 1e-8).log().mean(),
        -(Y * p + (1 - Y) * (1 - p)).log().mean(),
        -torch.where(Y > 0, p, 1 - p).log().mean(),
        F.binary_cross_entropy(p, Y),
        F.binary_cross_entropy(p.view(-1), Y.view(-1), weight=torch.full((ROWS * LABELS,), 2.0)),
        -F.logsigmoid(gate).mean(),
    ):
        assert told_of(loss) == ("2", BEFORE_LOGARITHM)


def test_no_sigmoid_twice_before_a_logarithm() -> None:
    x, gate = NET(X), NET(X).sigmoid()
    for loss in (
        F.binary_cross_entropy((10 * gate - 5).sigmoid(), Y),
        -(1 / (1 + torch.exp(-x))).log().mean(),
        -(1 / (1 + torch.exp(-x)) + 1e-8).log().mean(),
        -torch.sigmoid(gate - gate.flip(0)).log().mean(),  # one is to be above the other
        -F.logsigmoid(gate - gate.flip(0)).mean(),
        -F.logsigmoid(x).mean(),
        -(gate * x.sigmoid()).log().mean(),
        -torch.sigmoid(NET[2](NET[:2](X).sigmoid())).log().mean(),
        (gate.sigmoid() - Y).square().mean(),
        -(1 + torch.exp(-gate)).log().mean(),
    ):
        assert told_of(loss) is None


def test_no_sigmoid_twice() -> None:
    gate = NET(X).sigmoid()
    for loss in (
        with_logits(NET(X), Y),
        F.binary_cross_entropy(gate, Y),
        -Bernoulli(probs=gate).log_prob(Y).mean(),
        with_logits(gate * NET(X), Y),
        with_logits(10 * gate - 5, Y),  # with a temperature
        with_logits(gate.clamp(1e-6, 1 - 1e-6).logit(), Y),
        with_logits(gate.log() - (1 - gate).log(), Y),
        with_logits(gate.sum(1), Y[:, 0]),
        with_logits(NET[2](NET[:2](X).sigmoid()), Y),
        with_logits(torch.cat([gate, NET(X)]), torch.cat([Y, Y])),
        with_logits(NET(X), gate),  # the target of a teacher
        F.cross_entropy(gate / 0.1, CLASSES),
        F.mse_loss(gate, Y),
    ):
        assert told_of(loss) is None
