"""Losses that are sums or logarithms of raw scores, told by their graphs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

from traindbg.hooks.torch.losses.scores import cuts_off_raw_scores, is_made_of_raw_scores

CLASSES, ROWS = 4, 5
torch.manual_seed(0)
NET = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, CLASSES))
X, Y = torch.randn(ROWS, 6), torch.tensor([0, 3, 1, 2, 1])
ONE_HOT = F.one_hot(Y, CLASSES).float()
SOFT = torch.softmax(torch.randn(ROWS, CLASSES), 1)


def test_labels_times_scores() -> None:
    assert is_made_of_raw_scores(-(SOFT * NET(X)).sum(1).mean())
    assert is_made_of_raw_scores(-(NET(X) * ONE_HOT).sum() / ROWS)
    assert is_made_of_raw_scores(torch.sum(-SOFT * NET(X), dim=-1).mean())
    assert is_made_of_raw_scores(-(ONE_HOT * NET(X) / 2).sum(1).mean() * 1024.0)
    penalty = sum(weight.pow(2).sum() for weight in NET.parameters())
    assert is_made_of_raw_scores(-(ONE_HOT * NET(X)).sum(1).mean() + 1e-4 * penalty)


def test_picked_scores() -> None:
    assert is_made_of_raw_scores(-NET(X).gather(1, Y[:, None]).mean())
    assert is_made_of_raw_scores(-NET(X)[torch.arange(ROWS), Y].mean())
    assert is_made_of_raw_scores(-(NET(X).gather(1, Y[:, None])[:, 0] * torch.rand(ROWS)).mean())


def test_what_the_graph_saved_is_not_read() -> None:
    """Reading runs the hooks of those who pack it."""
    unpacked: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpacked.append):
        loss = -NET(X)[torch.arange(ROWS), Y].mean()
    assert is_made_of_raw_scores(loss)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpacked.append):
        loss = -(SOFT * NET(X)).sum(1).mean()
    is_made_of_raw_scores(loss)
    assert not unpacked


def test_convolutions_give_scores_too() -> None:
    net = nn.Sequential(nn.Conv1d(1, CLASSES, 3), nn.Flatten(2))
    scores = net(torch.randn(ROWS, 1, 3)).squeeze(2)
    assert is_made_of_raw_scores(-(SOFT * scores).sum(1).mean())


def test_other_losses() -> None:
    scores = NET(X)
    right = (ONE_HOT * scores).sum(1)
    for loss in (
        F.cross_entropy(scores, Y),
        F.nll_loss(scores, Y),  # a function of its own, whose argument is looked at
        -(SOFT * scores.log_softmax(1)).sum(1).mean(),
        -(SOFT * scores.softmax(1)).sum(1).mean(),  # an expected reward
        -scores.log_softmax(1).gather(1, Y[:, None]).mean(),
        (torch.logsumexp(scores, 1) - right).mean(),  # cross-entropy, written out
        (right - 1).square().mean(),  # values of actions
        F.relu(1 + scores - right[:, None]).sum(1).mean(),  # a hinge
        -scores.mean(),  # a critic
        -scores[:, 0].mean(),
        -scores[Y < 2].mean(),
        (torch.randn(ROWS, CLASSES) * scores).sum(1).mean(),
        scores.detach().sum(),
    ):
        assert not is_made_of_raw_scores(loss)


def test_two_scores_are_no_classes() -> None:
    critics = nn.Linear(6, 2)(X)
    weights = torch.full((ROWS, 2), 0.5)
    assert not is_made_of_raw_scores(-(weights * critics).sum(1).mean())


def test_nothing_is_left_behind() -> None:
    loss = -(SOFT * NET(X)).sum(1).mean()
    before = torch.get_rng_state()
    assert is_made_of_raw_scores(loss)
    assert torch.equal(before, torch.get_rng_state())
    assert loss.requires_grad
    loss.backward()
    assert all(parameter.grad is not None for parameter in NET.parameters())
    NET.zero_grad()


LOW, HIGH = 1e-7, 1 - 1e-7


def cut(values: torch.Tensor) -> torch.Tensor:
    return values.clamp(LOW, HIGH)


def test_logarithms_of_scores_that_are_cut_off() -> None:
    rows = torch.arange(ROWS)
    wide = nn.Linear(6, CLASSES)
    nn.init.constant_(wide.bias, -1.0)
    several = cut(wide(X))
    for loss in (
        (-torch.log(torch.clamp(wide(X), LOW, HIGH)[rows, Y])).mean(),
        -torch.log(torch.clip(wide(X), LOW, HIGH)).gather(1, Y[:, None]).mean(),
        -(ONE_HOT * cut(wide(X)).log()).sum(1).mean(),
        -torch.log(cut(wide(X)[rows, Y])).mean(),
        -(ONE_HOT * several.log() + (1 - ONE_HOT) * (1 - several).log()).mean(),
        -torch.log(cut(wide(X))[rows, Y]).mean() + 1e-3 * NET[0].weight.square().sum(),
    ):
        assert cuts_off_raw_scores(loss)


def test_logarithms_of_what_is_cut_off_for_other_reasons() -> None:
    rows = torch.arange(ROWS)
    shares = torch.softmax(torch.randn(ROWS, ROWS), 1)
    tame = nn.Linear(6, CLASSES)
    nn.init.zeros_(tame.weight)
    nn.init.constant_(tame.bias, 0.5)
    for loss in (
        -torch.log(cut(NET(X).softmax(1))[rows, Y]).mean(),
        -torch.log(cut(NET(X).sigmoid())).mean(),
        -torch.log(cut(shares @ NET(X).softmax(1))).mean(),  # a mixture of probabilities
        torch.log(NET(X).clamp(1e-7, 10.0)).mean(),  # of amounts
        torch.log(NET(X).clamp(min=1e-7)).mean(),
        torch.log(cut(NET(X).exp())).mean(),
        -torch.log(cut(tame(X))).mean(),  # that it lies in there may be known
        cut(NET(X)).square().mean(),
        -(SOFT * NET(X)).sum(1).mean(),
    ):
        assert not cuts_off_raw_scores(loss)


def test_what_is_cut_off_is_not_read_where_others_pack_it() -> None:
    unpacked: list[torch.Tensor] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpacked.append):
        loss = -torch.log(cut(NET(X))[torch.arange(ROWS), Y]).mean()
    assert not cuts_off_raw_scores(loss)
    assert not unpacked


def test_barriers_are_no_likelihoods() -> None:
    given, wanted = NET(X), torch.rand(ROWS, CLASSES)
    barrier = cut(given).log().mean() + cut(1 - given).log().mean()
    assert not cuts_off_raw_scores(-barrier)
    assert not cuts_off_raw_scores(F.mse_loss(given, wanted) - 1e-3 * barrier)
    weighed = (wanted * cut(given).log()).mean()
    assert cuts_off_raw_scores(-weighed)
    assert not cuts_off_raw_scores(F.mse_loss(given, wanted) - 1e-3 * weighed)


def test_one_score_of_each_row_may_be_a_linear_model() -> None:
    labels = (Y > 1).float()
    one, several = nn.Linear(6, 1), nn.Linear(6, CLASSES)
    nn.init.constant_(one.bias, -1.0)
    nn.init.constant_(several.bias, -1.0)
    for scores in (one(X).squeeze(1), several(X)[:, 0]):
        binary = cut(scores)
        loss = -(labels * binary.log() + (1 - labels) * (1 - binary).log()).mean()
        assert not cuts_off_raw_scores(loss)


def test_cosines_of_pairs_have_no_weights() -> None:
    codes = F.normalize(NET(X), dim=1)
    cosines = codes @ codes.T
    alike = (Y[:, None] == Y[None]).float()
    loss = -(alike * cut(cosines).log()).mean() - ((1 - alike) * cut(1 - cosines).log()).mean()
    assert not cuts_off_raw_scores(loss)
