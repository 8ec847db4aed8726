"""Where rows are padded, and how far a mask agrees with it. Of tensors in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from traindbg.hooks.torch.data.masks import MOST_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traindbg.hooks.torch.data.masks import Mask


def says_yes_or_no(values: torch.Tensor) -> bool:
    """Whether it is a mask: of truth values, or of the integers 0 and 1."""
    if values.dtype == torch.bool or values.dim() != 2:
        return bool(values.dtype == torch.bool)
    return not values.is_floating_point() and bool(((values == 0) | (values == 1)).all())


def padding_of(ids: torch.Tensor) -> torch.Tensor | None:
    """Where rows are padded: True. [rows, length] of integers, or [rows, length, values].

    Padding is one number (of vectors, 0) that stands only at the ends of rows, or only at their
    beginnings, as often as rows differ in length. None where there is none, or it cannot be told,
    as by 0s and 1s, of which either may be the padding.
    """
    if ids.dim() == 3:
        is_it = (ids == 0).all(-1)
        candidates = [is_it]
    elif ids.dim() == 2 and not ids.is_floating_point() and ids.dtype != torch.bool:
        if says_yes_or_no(ids):
            return None
        ends = [ids[:, -1], ids[:, 0]]
        candidates = [ids == end.mode().values for end in ends]
    else:
        return None
    for is_it in candidates:
        for found in (is_it, is_it.flip(1)):
            # From the end on, as long as there is nothing else.
            run = found.flip(1).long().cumprod(1).flip(1).bool()
            lengths = run.sum(1)
            if not bool(lengths.any()) or lengths.unique().numel() < 2:
                continue
            if int(found.sum()) == int(run.sum()) >= 0.02 * run.numel():
                return run if found is is_it else run.flip(1)
    return None


def without_token(shown: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is shown of an input to which the model added one position, in front or behind."""
    if shown.shape[1] == shown.shape[2]:
        return shown[:, 1:, 1:], shown[:, :-1, :-1]
    return shown[:, :, 1:], shown[:, :, :-1]


def how_wrong(shown: torch.Tensor, padding: torch.Tensor) -> tuple[float, float] | None:
    """How far, from 0 to 1, the padding is seen and all else is hidden; and whether it is mirrored.

    Mirrored, 1 or 0: in every row as many positions are hidden as it has padding, at its other end.
    None: nothing to tell it by.
    """
    rows = min(len(shown), len(padding))
    if len(shown) == 1:
        shown = shown.expand(len(padding[:MOST_ROWS]), -1, -1)
        rows = len(shown)
    shown, padding = shown[:rows], padding[:rows]
    has_both = padding.any(1) & ~padding.all(1)
    if not bool(has_both.any()):
        return None
    shown, padding = shown[has_both], padding[has_both]
    if shown.shape[1] == shown.shape[2]:  # what padding itself looks at is nobody's concern
        shown = shown & ~padding[:, :, None]
    seen = shown.any(1)
    padding_seen = (seen & padding).sum() / padding.sum()
    words_hidden = (~seen & ~padding).sum() / (~padding).sum()
    inverted = float(torch.minimum(padding_seen, words_hidden))
    # Of rows that are half padding, one is the other.
    is_mirrored = inverted < 0.9 and len(padding) > 1 and torch.equal(~seen, padding.flip(1))
    return inverted, float(is_mirrored)


def lengths_said(mask: torch.Tensor) -> Iterator[torch.Tensor]:
    """Where rows are padded, as a mask of truth values may say: True at one of their ends."""
    for padding in (mask, ~mask):
        for turned in (padding, padding.flip(1)):
            run = turned.flip(1).long().cumprod(1).flip(1).bool()
            if torch.equal(run, turned) and turned.sum(1).unique().numel() > 1:
                yield padding


def hides_queries(mask: Mask, padding: torch.Tensor) -> float | None:
    """1: padding sees nothing, all else does, padding too: a mask along the wrong axis.

    None: nothing to tell it by.
    """
    rows = min(len(mask.shown), len(padding))
    shown, blind, padding = mask.shown[:rows], mask.blind[:rows], padding[:rows]
    has_both = padding.any(1) & ~padding.all(1)
    if not bool(has_both.any()) or shown.shape[1] != shown.shape[2]:
        return None
    shown, blind, padding = shown[has_both], blind[has_both], padding[has_both]
    seen = (shown & ~padding[:, :, None]).any(1)
    return float(torch.equal(blind, padding) and bool((seen | ~padding).all()))


def is_of_others(mask: torch.Tensor, padding: torch.Tensor) -> float | None:
    """1: in each row it hides the end where the padding is, by the lengths of other rows.

    0: by no such lengths, or it is right. None: it is the padding, either way round.
    """
    rows = len(padding)
    if bool(padding[:, 0].any()):  # it is in front
        mask, padding = mask.flip(1), padding.flip(1)
    for hidden in (mask, ~mask):
        if torch.equal(hidden, padding):
            return None
    for hidden in (mask, ~mask):
        run = hidden.flip(1).long().cumprod(1).flip(1).bool()
        if torch.equal(run, hidden) and bool(hidden.any()):
            here, there = hidden.sum(1), padding.sum(1)
            is_other = torch.equal(here.sort().values, there.sort().values)
            return float(is_other and 2 * int((here != there).sum()) >= rows)
    return 0.0
