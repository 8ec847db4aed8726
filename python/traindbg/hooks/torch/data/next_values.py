"""Whether the targets of a loss are an input of the model, one position on.

What is compared lies where it was computed. Targets that were computed anew (`losses.compared`)
are equal within their last bits, which come with them as a margin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    import weakref

_FEWEST = 16  # values that are compared


class Given(NamedTuple):
    """An input of a model."""

    values: torch.Tensor  # of the first rows; without trailing dimensions of size 1
    rows: int  # of all
    source: weakref.ref[torch.Tensor] | None = None


class Target(NamedTuple):
    """Of a loss function, beside an input of which it may be the next values."""

    given: int  # place among the inputs
    inputs: int  # that there were when the loss was computed
    values: torch.Tensor  # [rows, values], of the first rows of the input
    number: int  # of values of all rows
    margin: torch.Tensor | float = 0.0  # by which equal values may differ


class Next(NamedTuple):
    """The targets of a step are an input, one position on."""

    length: int
    known: torch.Tensor  # [length]: the positions that have a target in all of the first rows
    along: int  # the dimension of the input that has them
    is_ring: bool = False  # the last target is the first input, in all rows


def _of_one_value(rows: int, length: int, last: int) -> tuple[int, ...]:
    """How many targets there may be: one of the values at each position, in either dimension."""
    return rows * length, rows * (length - 1), rows * last, rows * (last - 1)


def may_be_next(given: Given, count: int) -> bool:
    """Whether so many targets may be the input one position on; see `next_values`."""
    x, rows = given.values, given.rows
    length, whole = x.shape[1], x[0].numel() * rows
    return (
        count in (whole, whole // length * (length - 1))
        or (x.dim() == 3 and count in _of_one_value(rows, length, x.shape[2]))
        or (count % rows == 0 and 4 <= count // rows < max(x.shape[1:3]) - 1)
    )


def next_values(given: Given, target: torch.Tensor) -> Next | None:
    """Where the targets are the input one position on; None where they are something else."""
    count = target.numel()
    if not may_be_next(given, count):
        return None
    kept = target.detach().reshape(given.rows, -1)[: len(given.values)]
    return next_of(given, Target(0, 1, kept, count))


class _Pair(NamedTuple):
    """Targets, and inputs one position on, of the first rows."""

    target: torch.Tensor
    following: torch.Tensor
    length: int  # of the sequence in the input
    along: int  # its dimension there
    # The target behind the last of these, and the first input: on a ring, they are the same.
    ends: tuple[torch.Tensor, torch.Tensor] | None = None


def _pairs(given: Given, target: torch.Tensor, count: int) -> list[_Pair]:
    """Those that there may be. `target`: of the first rows; `count`: of all."""
    x, rows, kept = given.values, given.rows, len(given.values)
    length = x.shape[1]
    whole = x[0].numel() * rows
    pairs: list[_Pair] = []
    if count == whole:
        y = target.reshape(kept, *x.shape[1:])
        pairs.append(_Pair(y[:, :-1], x[:, 1:], length, 1, (y[:, -1], x[:, 0])))
        if kept == rows > 1:  # the other way round: the sequence is the first dimension
            pairs.append(_Pair(y[:-1].transpose(0, 1), x[1:].transpose(0, 1), rows, 0))
    elif count == whole // length * (length - 1):
        y = target.reshape(kept, length - 1, *x.shape[2:])
        pairs.append(_Pair(y, x[:, 1:], length, 1))
    if x.dim() == 3 and count in (rows * length, rows * (length - 1)):  # one of its values
        y, end = target[:, : length - 1], target[:, -1]
        for value in range(min(x.shape[2], 16)):
            ends = (end, x[:, 0, value]) if count == rows * length else None
            pairs.append(_Pair(y, x[:, 1:, value], length, 1, ends))
    last = x.shape[-1]
    if x.dim() == 3 and count in (rows * last, rows * (last - 1)):  # of its channels
        y, behind = target[:, : last - 1], target[:, last - 1 :]
        for value in range(min(length, 16)):
            # What follows the last one is new, but of places on a ring, or where nothing does.
            is_new = ((behind != x[:, value, :1]) & (behind != 0)).all()
            if behind.numel() == 0 or bool(is_new):
                pairs.append(_Pair(y, x[:, value, 1:], last, 2))
    if count % rows == 0 and x.dim() <= 3:
        pairs += _of_the_later_part(x, target, count // rows)
    return pairs


def _of_the_later_part(x: torch.Tensor, target: torch.Tensor, wanted: int) -> list[_Pair]:
    """Of so many positions, where the model has seen enough to go on."""
    length, pairs = x.shape[1], []
    y, behind = target[:, :-1], slice(1 - wanted, None)
    if 4 <= wanted < length - 1:
        of = [x] if x.dim() == 2 else [x[:, :, value] for value in range(min(x.shape[2], 16))]
        pairs += [_Pair(y, one[:, behind], length, 1) for one in of]
    if x.dim() == 3 and 4 <= wanted < x.shape[2] - 1:
        of = [x[:, value] for value in range(min(length, 16))]
        pairs += [_Pair(y, one[:, behind], x.shape[2], 2) for one in of]
    return pairs


def _is_known(target: torch.Tensor) -> torch.Tensor:
    return torch.isfinite(target) if target.is_floating_point() else target != -100


def _are_equal(
    y: torch.Tensor, x: torch.Tensor, known: torch.Tensor, margin: torch.Tensor | float
) -> bool:
    """Nearly all that are known; and more than a value that stays the same."""
    number = int(known.sum())
    if number < _FEWEST or x.shape[1] < 3:
        return False
    step = float(margin)
    off = (y != x) if step == 0 else ~((y - x).abs() <= step)
    changes = (x[:, 1:] != x[:, :-1]) if step == 0 else (x[:, 1:] - x[:, :-1]).abs() > 10 * step
    is_equal = int((~off & known).sum()) >= 0.99 * number
    return is_equal and float(changes.float().mean()) >= 0.1


def next_of(given: Given, target: Target) -> Next | None:
    """The same as `next_values`, of what was kept of a target."""
    for y, following, length, along, ends in _pairs(given, target.values, target.number):
        is_known = _is_known(y)
        if not _are_equal(y, following, is_known, target.margin):
            continue
        known = torch.zeros(length, dtype=torch.bool, device=y.device)
        # Behind the last of them there is none.
        known[length - 1 - y.shape[1] : -1] = is_known.transpose(0, 1).flatten(1).all(1)
        is_ring = ends is not None and bool(((ends[0] - ends[1]).abs() <= target.margin).all())
        return Next(length, known, along, is_ring)
    return None
