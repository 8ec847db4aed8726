"""Two softmaxes, one of what the other gave, told by the graphs of losses."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.distributions import Categorical, OneHotCategorical
from torch.nn import functional as F

from traindbg.hooks.torch.base.parameters import Owner
from traindbg.hooks.torch.losses.graph import look_at_graph

CLASSES, ROWS = 4, 5
torch.manual_seed(0)
NET = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, CLASSES))
X, Y = torch.randn(ROWS, 6), torch.tensor([0, 3, 1, 2, 1])
ONE_HOT = F.one_hot(Y, CLASSES).float()


def place_of(loss: torch.Tensor) -> str | None:
    owners = {
        id(parameter): Owner(f"{path}.{name}", path, type(module).__name__, 0)
        for path, module in NET.named_modules()
        for name, parameter in module.named_parameters(recurse=False)
    }
    graph = look_at_graph(loss, owners)
    assert graph is not None
    return graph.softmax_twice


def by_hand(scores: torch.Tensor) -> torch.Tensor:
    grown = torch.exp(scores)
    return grown / grown.sum(-1, keepdim=True)


def test_probabilities_as_logits_of_a_distribution() -> None:
    for given in (
        NET(X).softmax(-1),
        F.softmax(NET(X), dim=1),
        by_hand(NET(X)),
        NET(X).softmax(-1).clamp(min=1e-6),
        torch.stack([NET(row).softmax(-1) for row in X]),
        NET(X).softmax(-1).masked_fill(torch.rand(ROWS, CLASSES) > 0.9, -1e9),
        NET(X).softmax(-1).double(),
    ):
        assert place_of(-Categorical(logits=given).log_prob(Y).mean()) == "2"
        assert place_of(-OneHotCategorical(logits=given).log_prob(ONE_HOT).mean()) == "2"
    assert place_of(-Categorical(logits=NET(X)[None].softmax(-1)).entropy().mean()) == "2"


def test_two_softmaxes_in_other_forms() -> None:
    once = NET(X).softmax(1)
    for loss in (
        F.nll_loss(F.log_softmax(once, 1), Y),
        -Categorical(once.softmax(-1)).log_prob(Y).mean(),
        -(ONE_HOT * once.softmax(1).log()).sum(1).mean(),
        (torch.exp(once).sum(1).log() - (ONE_HOT * once).sum(1)).mean(),
        (once.logsumexp(1) - once.gather(1, Y[:, None]).squeeze(1)).mean(),
        (once.logsumexp(1) - once[torch.arange(ROWS), Y]).mean(),
        -(once - once.exp().sum(1, keepdim=True).log())[torch.arange(ROWS), Y].mean(),
    ):
        assert place_of(loss) == "2"


def test_one_softmax() -> None:
    once = NET(X).softmax(-1)
    pairs = NET(X).softmax(0)
    wide = NET(X).softmax(-1).view(ROWS, 2, 2)
    for loss in (
        F.cross_entropy(NET(X), Y),
        -Categorical(logits=NET(X)).log_prob(Y).mean(),
        -Categorical(once).log_prob(Y).mean(),
        -Categorical(once * torch.rand(ROWS, CLASSES)).log_prob(Y).mean(),
        -Categorical(logits=(once + 1e-8).log()).log_prob(Y).mean(),
        -Categorical(logits=NET(X).log_softmax(-1)).log_prob(Y).mean(),
        F.cross_entropy(once / 0.05, Y),  # with a temperature
        F.cross_entropy(pairs, Y),  # along another dimension
        -wide.log_softmax(-1).mean(),  # of a part
        F.cross_entropy(once @ torch.rand(CLASSES, CLASSES), Y),  # attention
        F.cross_entropy(once.detach() + NET(X), Y),
        once.softmax(-1).square().mean(),  # without a logarithm
        (once.logsumexp(0) - once).mean(),
    ):
        assert place_of(loss) is None


def test_a_smooth_maximum_of_weights() -> None:
    once = NET(X).softmax(-1)
    for smooth in (once.logsumexp(-1), once.exp().sum(-1).log(), once[:, :4].logsumexp(-1)):
        assert place_of(F.cross_entropy(NET(X), Y) + 0.1 * smooth.mean()) is None
    margin = once.logsumexp(-1, keepdim=True) - NET(X).log_softmax(-1)
    assert place_of(margin.mean()) is None


def test_softmaxes_joined_with_something_else() -> None:
    scores, other = NET(X), NET(X + 1)
    once, again = scores.softmax(-1), other.softmax(-1)

    def loss(joined: torch.Tensor) -> torch.Tensor:
        return -joined.log_softmax(-1).mean()

    for both in (
        torch.cat([once, again], 0),
        torch.stack([once, again.clamp(min=1e-6)], 1),
        torch.cat([once[None], again[None]], 0),
    ):
        assert place_of(loss(both)) == "2"
    for joined in (
        torch.cat([once, scores], 0),
        torch.cat([scores, once], 0),
        torch.cat([once, X[:, :CLASSES]], 0),
        torch.cat([once[:, :3], scores[:, :1]], 1),
        torch.cat([once[:, :2], again[:, :2]], 1),
        torch.cat([once, scores.softmax(0)], 0),
        torch.stack([once, scores], 0),
        torch.stack([once, again], -1),
        torch.stack([once, again, once, again], -1),
    ):
        assert place_of(loss(joined)) is None
    stacked = torch.stack([once, scores], 0)
    assert place_of((stacked - stacked.logsumexp(-1, keepdim=True)).mean()) is None
    assert place_of(torch.stack([once, scores]).logsumexp(-1).mean()) is None


def test_nothing_is_left_behind() -> None:
    loss = -Categorical(logits=NET(X).softmax(-1)).log_prob(Y).mean()
    before = torch.get_rng_state()
    assert place_of(loss) == "2"
    assert torch.equal(before, torch.get_rng_state())
    loss.backward()
    assert all(parameter.grad is not None for parameter in NET.parameters())
    NET.zero_grad()
