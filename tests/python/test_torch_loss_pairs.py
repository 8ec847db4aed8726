"""Whether a written-out loss takes each prediction with the data of all samples, by its graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from traindbg.hooks.torch.losses.compared import compared_shapes
from traindbg.hooks.torch.losses.pairs import pairs_in

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def pinball(column: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    error = y - column
    return torch.maximum(0.1 * error, -0.9 * error).mean()


def columns() -> torch.Tensor:
    torch.manual_seed(0)
    out: torch.Tensor = nn.Linear(3, 2)(torch.randn(8, 3))
    return out


def energy(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return 2 * (p[:, None] - y).abs().mean() - (p[:, None] - p).abs().mean()


def cox(risk: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    at_risk = (y[:, None] <= y).float()
    return ((risk.exp() * at_risk).sum(1).log() - risk).mean()


FAULTS: dict[str, Loss] = {
    "pinball": pinball,
    "several pinballs": lambda p, y: pinball(p, y) + pinball(p, y) + 0.0,
    "stacked": lambda p, y: torch.stack([pinball(p, y), pinball(p, y)]).mean(),
    "log-cosh": lambda p, y: (p - y).cosh().log().mean(),
    "Charbonnier": lambda p, y: torch.sqrt((p - y) ** 2 + 1e-3).mean(),
    "times itself": lambda p, y: ((p - y) * (p - y)).sum() / len(y),
    "cross entropy": lambda p, y: -(y.sigmoid() * p.sigmoid().log()).mean(),
    "advantages": lambda p, y: -(p.log_softmax(0) * y).mean(),
    "over a scale": lambda p, y: (p / y).mean(),
    "product, bent": lambda p, y: torch.where(y > 0, (p * y).exp(), p * y).mean(),
}


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("is_flat", [False, True])
def test_each_prediction_goes_with_the_data_of_all_samples(name: str, is_flat: bool) -> None:
    prediction, y = columns()[:, 0:1], torch.randn(8)
    if is_flat:
        prediction, y = prediction[:, 0], y[:, None]
    loss = FAULTS[name](prediction, y)
    shape = tuple(prediction.shape)
    assert compared_shapes(loss) == (shape, (8, 8))
    loss.backward()  # the graph is as it was


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("is_flat", [False, True])
def test_each_prediction_goes_with_its_own(name: str, is_flat: bool) -> None:
    prediction, y = columns()[:, 0:1], torch.randn(8, 1)
    if is_flat:
        prediction, y = prediction[:, 0], y[:, 0]
    pairs = pairs_in(FAULTS[name](prediction, y))
    assert pairs.result == ()


def focal(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    chance, is_one = p.sigmoid(), (y > 0).float()
    positive = is_one * (1 - chance) ** 2 * chance.log()
    negative = (1 - is_one) * chance**2 * (1 - chance).log()
    return -(positive + negative).mean()


@pytest.mark.parametrize("is_flat", [False, True])
def test_pairs_that_are_multiplied_by_the_prediction_once_more(is_flat: bool) -> None:
    prediction, y = columns()[:, 0:1], torch.randn(8)
    if is_flat:
        prediction, y = prediction[:, 0], y[:, None]
    assert pairs_in(focal(prediction, y)) == (tuple(prediction.shape), (8, 8), False)
    assert pairs_in(focal(prediction, y.reshape(prediction.shape))).result == ()


MEANT: dict[str, Loss] = {
    "energy distance": energy,
    "kernel": lambda p, y: (-((p.unsqueeze(1) - y) ** 2)).exp().mean(),
    "of a column": lambda p, y: (p.view(-1, 1) - y).square().mean(),
    "with itself": lambda p, y: ((p - p[:, None]).square() * (y - y[:, None]).sign()).mean(),
    "with itself, weighed": lambda p, y: ((p - p[:, None]).square() * p[:, None].exp()).mean(),
    "of a kernel, weighed": lambda p, y: ((p[:, None] - y).square() * p.exp()).mean(),
    "a graph": lambda p, y: (p * (y * y[:, None])).mean(),
    "Cox": cox,
    "one number for all": lambda p, y: (p.mean() - y).square().mean(),
    "one row for all": lambda p, y: (p - torch.outer(y[:3], y)).square().mean(),
    "a mean of differences": lambda p, y: (p + y[:, None]).mean(),
}


@pytest.mark.parametrize("name", MEANT)
def test_pairs_that_are_meant(name: str) -> None:
    prediction, y = columns()[:, 0], torch.randn(8)
    loss = MEANT[name](prediction, y)
    assert pairs_in(loss).result == ()
    shapes = compared_shapes(loss)
    assert shapes is None or shapes[1] != (8, 8)


def transport(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    u, v = p[:, 0:1], p[:, 1:]
    return (u - (y - y.t()).square() + v.t()).exp().mean() - u.mean() - v.mean()


def mixture(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    place, weight = p[:, 0:1], p[:, 1:].softmax(0)
    return (weight * (place - y[:, 0]).square()).sum() / len(y)


COLUMNS_MEANT: dict[str, Loss] = {
    "energy distance": lambda p, y: (
        2 * (p[:, :1] - y.t()).abs().mean() - (p[:, :1] - p[:, :1].t()).abs().mean()
    ),
    "kernels": lambda p, y: (
        (-((p[:, :1] - p[:, :1].t()) ** 2)).exp().mean()
        - 2 * (-((p[:, :1] - y.t()) ** 2)).exp().mean()
    ),
    "transport": transport,
    "mixture": mixture,
    "two columns": lambda p, y: (p[:, 1:].exp() * (y[:, 0] * p[:, :1].exp())).mean(),
    "assigned softly": lambda p, y: (p[:, :1].sigmoid() * (-(p[:, :1] - y.t()).abs()).exp()).mean(),
}


@pytest.mark.parametrize("name", COLUMNS_MEANT)
def test_pairs_of_columns_that_are_meant(name: str) -> None:
    assert pairs_in(COLUMNS_MEANT[name](columns(), torch.randn(8, 1))).result == ()


def test_what_is_summed_over_quantiles_first() -> None:
    error = torch.randn(8, 1, 1) - columns()
    loss = torch.max(0.1 * error, -0.9 * error).sum(-1).mean()
    assert compared_shapes(loss) == ((8, 2), (8, 8, 2))
    by_rows = torch.max(0.1 * error, -0.9 * error).sum(0).mean()
    assert pairs_in(by_rows).result == ()


def test_rows_of_a_series_are_no_samples() -> None:
    """(n, k) against (n, n, k): a curve, an ensemble of as many teachers as there are samples."""
    for name in ("pinball", "log-cosh", "Charbonnier", "times itself"):
        assert pairs_in(FAULTS[name](columns(), torch.randn(8, 8, 2))).result == ()
    assert compared_shapes((columns() - torch.randn(8, 8, 2)).square().mean()) is None


@pytest.mark.parametrize("name", FAULTS)
def test_each_row_of_predictions_goes_with_the_data_of_all_samples(name: str) -> None:
    """(n, k) and (n, 1, 1), as quantiles and a target with a dimension too many."""
    prediction, y = columns(), torch.randn(8, 1, 1)
    loss = FAULTS[name](prediction, y)
    shape = tuple(prediction.shape)
    assert compared_shapes(loss) == (shape, (8, 8, 2))
    pairs = pairs_in(FAULTS[name](prediction, torch.randn(shape)))
    assert pairs.result == ()


def images() -> torch.Tensor:
    return nn.Conv2d(1, 1, 3, padding=1)(torch.randn(8, 1, 6, 5))


def dice(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    both = (p.sigmoid() * y).sum(dim=(-2, -1))
    return 1 - ((2 * both + 1) / (p.sigmoid().sum((-2, -1)) + y.sum((-2, -1)) + 1)).mean()


OF_IMAGES: dict[str, Loss] = {
    "squared": lambda p, y: (p - y).square().mean(),
    "Charbonnier": lambda p, y: ((p - y).square() + 1e-3).sqrt().mean(),
    "by image": lambda p, y: (p.sigmoid() - y).abs().sum(dim=(-2, -1)).mean(),
    "Dice": dice,
}


@pytest.mark.parametrize("name", OF_IMAGES)
def test_images_of_one_channel_and_masks_without_it(name: str) -> None:
    prediction, y = images(), torch.rand(8, 6, 5)
    found = compared_shapes(OF_IMAGES[name](prediction, y))
    assert found is not None
    assert found[1][:2] == (8, 8)
    for right in (OF_IMAGES[name](prediction, y[:, None]), OF_IMAGES[name](prediction[:, 0], y)):
        assert pairs_in(right).result == ()


def test_images_that_go_with_others_by_intention() -> None:
    y = torch.rand(8, 6, 5)
    squared = OF_IMAGES["squared"]
    assert pairs_in(squared(images()[:, 0].unsqueeze(1), y)).result == ()  # all pairs
    of_annotators = squared(images(), torch.rand(8, 8, 6, 5))  # as many as samples
    assert pairs_in(of_annotators).result == ()
    assert compared_shapes(of_annotators) is None
    masks = torch.zeros(8, 8, 40, 40)
    masks[:, :, 20:, 20:] = torch.rand(8, 8, 20, 20)  # in the middle of pictures that are empty
    wide = nn.Conv2d(1, 1, 3, padding=1)(torch.randn(8, 1, 40, 40))
    assert pairs_in(squared(wide, masks)).result == ()
    assert pairs_in(squared(nn.Parameter(torch.rand(8, 1, 6, 5)), y)).result == ()
    templates = torch.rand(8, 6, 5)
    assert (
        pairs_in(((images() * templates).sum((2, 3)) - torch.rand(8, 8)).abs().mean()).result == ()
    )
    basis = torch.rand(8, 5)  # as many steps as samples
    weights = nn.Conv1d(1, 1, 3, padding=1)(torch.rand(8, 1, 5))
    assert pairs_in(((weights * basis).sum(-1) - torch.rand(8, 8)).square().mean()).result == ()


def test_rows_that_are_paired_by_intention() -> None:
    rows, y = columns(), torch.randn(8, 2)
    assert pairs_in((rows.unsqueeze(1) - y).square().mean()).result == ()
    assert pairs_in((rows.unsqueeze(1) - torch.randn(8, 8, 2)).square().mean()).result == ()
    square = nn.Linear(3, 8)(torch.randn(8, 3))  # quantiles, as many as samples (QR-DQN)
    assert pairs_in((torch.randn(8, 8).t().unsqueeze(-1) - square).abs().mean()).result == ()
    assert pairs_in((rows[None] - y[:, None]).square().mean()).result == ()
    centres = nn.Parameter(torch.randn(8, 2))
    assert pairs_in((centres - y[:, None]).square().mean()).result == ()


def test_what_the_model_itself_makes_of_all_pairs_is_left_to_others() -> None:
    column, y = columns(), torch.randn(8)
    loss = (column[:, 0] + column[:, 1:2] - y).square().mean()
    assert not pairs_in(loss).are_meant
    assert compared_shapes(loss) == ((8, 8), (8, 8))


def test_what_was_packed_is_left_alone() -> None:
    def unpack(_: torch.Tensor) -> torch.Tensor:
        raise AssertionError("unpacked")

    prediction, y = columns()[:, 0:1], torch.randn(8)
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        loss = -(y.sigmoid() * prediction.sigmoid().log()).mean()
    assert pairs_in(loss).result == ()
