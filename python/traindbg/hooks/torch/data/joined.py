"""Whether a series that a model is given was cut wrongly from what comes next, its target.

It may have been standardised together with that:

    window = (window - window.mean()) / window.std()  # before it is cut in two
    context, horizon = window[:48], window[48:]

Then the mean of each row's context tells that of its horizon, which is not known in use. It shows
exactly: over input and target together, each row has a mean of 0 and a spread of 1, and over the
input alone it has not.

The same holds of any other rows that were standardised and then parted: pixels of which some are
masked, parts of a whole. Nothing has to come after them, so only series are told of whose target
begins where the input ends.

Or it was cut one step late: its last value is the target's first. Only series whose neighbours are
close are told of: features in no order of time share values for other reasons.

    past, future = flow[end - 29 : end + 1], flow[end : end + 3]
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from traindbg.hooks.torch.base.device import widest_of

_FEWEST_ROWS = 8
_FEWEST_GIVEN, _FEWEST_WANTED = 4, 2  # values of a row
_FEWEST_BEFORE_SEAM = 8  # values given; the state of a system, and a few features, have fewer
_MOST_VALUES = 1 << 18
_MOST_CHANNELS = 16
_MEAN = 1e-4  # deviations, by which a mean may be off 0 by rounding
_SPREAD = 0.02  # by which a spread may be off 1, as by a small number added to what is divided by
_FOLLOWS = 0.5  # of the distance of any two values: neighbours in a series are closer
_MOST_COMPARED = 32  # rows, and places of a row, of which all pairs are compared


class Together(NamedTuple):
    """One value each, of the series of which most rows were standardised with the target."""

    together: torch.Tensor  # share of the rows whose input and target together were; 0 of no series
    alone: torch.Tensor  # share of the rows whose input, or whose target, alone has a mean of 0
    places: int  # values of input and target together


class Begins(NamedTuple):
    """One value each, of the series of which most rows end with their target's first value."""

    given: torch.Tensor  # share of the rows of which that is so, bit for bit; 0 of no series
    again: torch.Tensor  # share of the rows whose second target is a value of the input, too
    changed: torch.Tensor  # share of the rows whose last value is not the one before, or any row's


def scaled_with_input(inputs: torch.Tensor, labels: torch.Tensor) -> Together | None:
    """Of series, whether each row was standardised by its inputs and labels together.

    Args:
        inputs: (rows, steps), (rows, steps, values), or (rows, channels, steps).
        labels: the same with other steps, or (rows, steps) of one of several values.

    Returns:
        None where it is no such series, or there are too few or too many. Nothing waits for a
        device. Cost: one pass over both, in float64.
    """
    found = [_shares(x, y) for x, y in _series(inputs, labels)]
    if not found:
        return None
    together = torch.stack([each.together for each in found])
    alone = torch.stack([each.alone for each in found])
    best = (together - alone).argmax().reshape(1)  # an index of one value waits for no device
    of_best = together.index_select(0, best).squeeze(0), alone.index_select(0, best).squeeze(0)
    return Together(*of_best, found[0].places)


def begins_with_last(inputs: torch.Tensor, labels: torch.Tensor) -> Begins | None:
    """Of series, whether the target's first value is the last one that is given.

    A target that goes on with further values of the input is another thing: the input itself, from
    its end on, or as it is one step later.

    Args:
        inputs: as of `scaled_with_input`.
        labels: the same, and fewer of them than inputs in each row.

    Returns:
        None where it is no such series, or there are too few or too many. Nothing waits for a
        device. Cost: one pass over the inputs, and all pairs of values of the first 32 rows.
    """
    found = [
        _at_seam(x, y)
        for x, y in _series(inputs, labels)
        if x.shape[1] >= _FEWEST_BEFORE_SEAM and y.shape[1] < x.shape[1]
    ]
    if not found:
        return None
    given = torch.stack([each.given for each in found])
    best = given.argmax().reshape(1)  # an index of one value waits for no device
    parts = (
        torch.stack(parts).index_select(0, best).squeeze(0) for parts in zip(*found, strict=True)
    )
    return Begins(*parts)


def _at_seam(given: torch.Tensor, wanted: torch.Tensor) -> Begins:
    last = given[:, -1]
    is_given = (wanted[:, 0] == last) & _follows(given, wanted)
    is_again = (given == wanted[:, 1:2]).any(1)
    has_changed = (last != given[:, -2]) & (last != last[:1])
    shares = [each.to(torch.float32).mean() for each in (is_given, is_again, has_changed)]
    return Begins(*shares)


def _series(inputs: torch.Tensor, labels: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What may be a series and its target, as (rows, steps) each; none where they are too large."""
    if (
        not inputs.is_floating_point()
        or not labels.is_floating_point()
        or inputs.layout is not torch.strided
        or labels.layout is not torch.strided
        or labels.device != inputs.device
        or labels.dim() < 2
        or inputs.shape[0] != labels.shape[0]
        or inputs.shape[0] < _FEWEST_ROWS
        or inputs.numel() + labels.numel() > _MOST_VALUES
    ):
        return []
    return [
        (x, y)
        for x, y in _pairs(inputs.detach(), labels.detach())
        if x.shape[1] >= _FEWEST_GIVEN and y.shape[1] >= _FEWEST_WANTED
    ]


def _pairs(inputs: torch.Tensor, labels: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """What may be the two parts of one series, as (rows, steps) each."""
    if labels.dim() == 3 and labels.shape[2] == 1:
        labels = labels.squeeze(2)
    if inputs.dim() == 3 and inputs.shape[2] == 1:
        inputs = inputs.squeeze(2)
    if inputs.dim() == 2 and labels.dim() == 2:
        return [(inputs, labels)]
    if inputs.dim() == 3 and labels.dim() == 3:
        pairs = []
        if inputs.shape[2] == labels.shape[2] <= _MOST_CHANNELS:  # each value by itself
            pairs += [(inputs[..., k], labels[..., k]) for k in range(inputs.shape[2])]
        if inputs.shape[1] == labels.shape[1] <= _MOST_CHANNELS:
            pairs += [(inputs[:, k], labels[:, k]) for k in range(inputs.shape[1])]
        return pairs
    if inputs.dim() == 3 and labels.dim() == 2:
        of_values = [inputs[..., k] for k in range(min(inputs.shape[2], _MOST_CHANNELS))]
        of_channels = [inputs[:, k] for k in range(min(inputs.shape[1], _MOST_CHANNELS))]
        return [(one, labels) for one in (*of_values, *of_channels)]
    return []


def _follows(given: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Whether these are a series and what comes next.

    Then neighbours, as the input's last value and the target's first, are closer to each other than
    values of any two places.
    """
    given, wanted = given[:_MOST_COMPARED], wanted[:_MOST_COMPARED]
    both = torch.cat([given, wanted], 1)
    some = both[:, :: -(-both.shape[1] // _MOST_COMPARED)]
    places = some.shape[1]
    any_two = (some.unsqueeze(2) - some.unsqueeze(1)).abs().sum((1, 2)) / (places * (places - 1))
    at_seam = (wanted[:, 0] - given[:, -1]).abs()
    inside = given.diff(dim=1).abs().mean(1)
    limit = _FOLLOWS * any_two
    return ((at_seam - limit).median() < 0) & ((inside - limit).median() < 0)


def _shares(given: torch.Tensor, wanted: torch.Tensor) -> Together:
    wide = widest_of(given)
    given, wanted = given.to(wide), wanted.to(wide)
    both = torch.cat([given, wanted], 1)
    places = both.shape[1]
    mean, deviation = both.mean(1), both.std(1, correction=0)
    unbiased = deviation * (places / (places - 1)) ** 0.5
    is_one = ((deviation - 1).abs() < _SPREAD) | ((unbiased - 1).abs() < _SPREAD)
    together = (mean.abs() < _MEAN) & is_one
    alone = (given.mean(1).abs() < _MEAN) | (wanted.mean(1).abs() < _MEAN)
    share = (together & _follows(given, wanted)).to(torch.float32).mean()
    return Together(share, alone.to(torch.float32).mean(), places)
