"""What two forward passes differ by, where they should not, and in which module it shows first."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.probes.forward_pass import Change, Passes

    # What should stay the same of an output, as [groups, rows, ...]; None: it cannot be told.
    Kept = Callable[[torch.Tensor], torch.Tensor | None]

_CHANGE = 1e-3  # of what rows differ by, or more, is no rounding
_CHANGE_OF_16_BITS = 2e-2
_NOISE = 10.0  # times what two equal passes differ by
_ROUNDING = {torch.float64: 1e-12, torch.float32: 1e-5}  # of the largest value
_SHARE = 0.5  # of the rows of a group that must show it


class Seen(NamedTuple):
    """What a probe found. `share` 0: nothing."""

    share: float  # of the rows, in the group that shows it most
    change: float  # the largest, in what rows differ by
    place: str  # the first module whose output shows it; empty: the model itself


def _change_of(
    before: torch.Tensor, again: torch.Tensor, after: torch.Tensor
) -> tuple[float, float] | None:
    """How many rows of [groups, rows, ...] differ between `before` and `after`, and by how much.

    `again` is `before`, computed again: what they differ by is noise. None: it cannot be told.
    """
    if before.shape != after.shape or before.shape != again.shape or before.numel() == 0:
        return None
    if not before.is_floating_point():
        return None
    is_wide = before.dtype in _ROUNDING
    kind = torch.float64 if before.dtype == torch.float64 else torch.float32
    rows = before.shape[0] * before.shape[1]
    x, y, z = (each.to(kind).reshape(rows, -1) for each in (before, again, after))
    if not bool((torch.isfinite(x) & torch.isfinite(y) & torch.isfinite(z)).all()):
        return None
    spread = float((x - x.mean(0)).abs().max())
    limit = max(
        (_CHANGE if is_wide else _CHANGE_OF_16_BITS) * spread,
        _ROUNDING.get(before.dtype, _CHANGE_OF_16_BITS) * float(x.abs().max()),
        _NOISE * float((x - y).abs().max()),
    )
    if spread == 0 or limit >= spread:
        return None
    changes = (x - z).abs().amax(1)
    shares = (changes > limit).float().reshape(before.shape[:2]).mean(1)
    share = float(shares.max())
    return share if share >= _SHARE else 0.0, float(changes.max()) / spread


def _kept_of(kept: Kept, outputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor] | None:
    found = [each for each in map(kept, outputs) if each is not None]
    return found if len(found) == len(outputs) else None


def told_apart(rows: int, *others: int) -> int:
    """How many rows of a batch are looked at: at least half of them, and none of `others`.

    A prime number where there is one, since few widths are: a dimension of that size is the rows'.
    """

    def is_prime(number: int) -> bool:
        return all(number % divisor for divisor in range(2, math.isqrt(number) + 1))

    found = [n for n in range(rows, max(rows // 2, 2), -1) if n not in others]
    return next(filter(is_prime, found), found[0] if found else rows)


class Question(NamedTuple):
    """What is asked by passes over a batch and a changed one."""

    change: Change  # of the inputs
    kept: Kept
    kept_inside: Kept  # the same of outputs of modules, which may be laid out in another way
    batch: Change | None = None  # what the inputs are before, if not the step's own


def compare(passes: Passes, question: Question) -> Seen | None:
    """Two passes over the batch, and one over the changed one; None: they do not tell it."""
    change, kept, _, batch = question
    three = passes.outputs(batch), passes.outputs(batch), passes.outputs(change)
    if len({len(outputs) for outputs in three}) != 1:
        return None
    worst: tuple[float, float] | None = None
    for outputs in zip(*three, strict=True):
        rows = _kept_of(kept, outputs)
        found = None if rows is None else _change_of(*rows)
        if found is not None and (worst is None or found > worst):
            worst = found
    if worst is None:
        return None
    return Seen(*worst, _first_place(passes, question) if worst[0] > 0 else "")


def _first_place(passes: Passes, question: Question) -> str:
    kept = question.kept_inside
    before = passes.outputs_of_modules(question.batch)
    after = passes.outputs_of_modules(question.change)
    for (name, one), (other_name, other) in zip(before, after, strict=False):
        if name != other_name:
            return ""
        rows = _kept_of(kept, (one, one, other))
        found = None if rows is None else _change_of(*rows)
        if found is not None and found[0] > 0:
            return name
    return ""
