"""What a call of attention, or a softmax that is written out, lets through.

All is computed where the tensors are, within the call, of the first rows of a batch.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph
from traindbg.hooks.torch.data.convolutions import Flag, flag
from traindbg.hooks.torch.data.mixers import HIDING_IN_PLACE, MULTI_HEAD

MOST_CELLS = 1 << 22  # of a mask that are looked at
MOST_ROWS = 16  # of a batch whose masks are looked at
_HIDDEN = -100.0  # what is added to a score where a position is hidden, or less
_NOTHING = 1e-30  # of a weight, or less
_TINY = -1e-6  # so much added to a score, or less than that below 0, hides nothing
_FEWEST_OF_WINDOW = 8  # positions of a sequence in which a window is hidden
_QK = ("query", "key")

_multi_head_signature = inspect.signature(MULTI_HEAD)


class Mask(NamedTuple):
    """What a call of attention, or a softmax, lets through."""

    place: str
    shown: torch.Tensor  # [rows, queries, keys]
    blind: torch.Tensor  # [rows, queries]: those from which all keys are hidden


def _shown(mask: torch.Tensor, shows: bool) -> torch.Tensor:
    """Where a mask lets through; `shows`: True lets through, if it holds truth values."""
    if mask.is_floating_point():
        return mask > _HIDDEN
    mask = mask != 0
    return mask if shows else ~mask


def hides_window(shown: torch.Tensor) -> bool:
    """Of [rows, positions, positions]: whether each hides itself and its neighbours, and no more.

    Up to one distance, 1 or more, beyond which most of the positions lie. To hide oneself alone may
    be meant. Keys that are hidden from all are padding, and not asked about.
    """
    length = shown.shape[1]
    if length < _FEWEST_OF_WINDOW or bool(shown.diagonal(dim1=1, dim2=2).any()):
        return False
    place = torch.arange(length, device=shown.device)
    apart = (place[:, None] - place).abs()
    for row in shown[:1] if bool((shown == shown[:1]).all()) else shown:
        there = row.any(0)
        hidden = ~row[there][:, there]
        if hidden.numel() == 0:
            return False
        distance = apart[there][:, there]
        window = int(distance[hidden].max())
        if window < 1 or 2 * (2 * window + 1) > len(hidden):
            return False
        if not bool((hidden == (distance <= window)).all()):
            return False
    return True


def _is_added_by_mistake(mask: torch.Tensor | None) -> Flag:
    """A mask of the numbers 0 and 1, which hide nothing where they are added to scores."""
    if mask is None or not mask.is_floating_point() or mask.numel() > MOST_CELLS:
        return False
    return flag(((mask == 0) | (mask == 1)).all() & (mask == 0).any() & (mask == 1).any())


def is_mask_added_to_scores(mask: torch.Tensor, scores: torch.Tensor) -> Flag:
    """The same of scores that are written out, [..., queries, keys] or [rows, keys].

    Ones and zeros may be a bias that is meant, for neighbours in a graph say: what hides padding
    has all zeros at one end of the keys, what hides later positions is a whole triangle.
    """
    if mask.dim() == 0 or mask.shape[-1] != scores.shape[-1]:
        return False
    mask = mask.detach()
    is_added = _is_added_by_mistake(mask)
    if is_added is False:
        return False
    if mask.dim() > 1 and scores.dim() > 2 and mask.shape[-2] > 1:
        ones = torch.ones_like(mask)
        return flag(is_added & ((mask == ones.tril()).all() | (mask == ones.triu(1)).all()))
    turns = (mask[..., 1:] != mask[..., :-1]).sum(-1)
    return flag(is_added & (turns <= 1).all())


def hides_next_to_nothing(mask: torch.Tensor | None) -> Flag:
    """A mask of 0 and one number just below it: -1e-9, say, where -1e9 was meant."""
    if mask is None or not mask.is_floating_point() or not 0 < mask.numel() <= MOST_CELLS:
        return False
    mask = mask.detach()
    least = mask.amin()
    is_tiny = (least < 0) & (least >= _TINY)
    return flag(is_tiny & ((mask == 0) | (mask == least)).all() & (mask == 0).any())


def is_filled_with_tiny(function: Any, args: Any, kwargs: Any, result: torch.Tensor) -> Flag:
    """The same of a number that takes the place of masked scores."""
    if function is torch.where:
        where = args[0] if args else kwargs.get("condition")
        numbers = [*args[1:], kwargs.get("input"), kwargs.get("other")]
    elif function is torch.Tensor.where:
        where = args[1] if len(args) > 1 else kwargs.get("condition")
        numbers = [*args[2:], kwargs.get("other")]
    else:
        where = args[1] if len(args) > 1 else kwargs.get("mask")
        numbers = [args[2] if len(args) > 2 else kwargs.get("value")]
    if any(isinstance(number, float) and _TINY <= number < 0 for number in numbers):
        return _is_shared(where, result)
    return False


def _is_shared(where: Any, scores: torch.Tensor) -> Flag:
    """Whether a mask of scores is the same in several rows, heads or batches.

    So it is one that somebody made; what is computed of the scores, as of those below 0, differs.
    """
    if not isinstance(where, torch.Tensor):
        return False
    of_all = (1,) * (scores.dim() - where.dim()) + tuple(where.shape)
    axes = [axis for axis in range(scores.dim() - 1) if scores.shape[axis] > 1]
    if any(of_all[axis] == 1 for axis in axes):
        return True
    if not is_plain(where) or capturing_graph(where) or not 0 < where.numel() <= MOST_CELLS:
        return False
    where = where.detach().bool()
    alike = [(where == where.narrow(axis, 0, 1)).all() for axis in axes]
    if not alike:
        return False
    # One that hides nothing, or everything, is alike in all of them however it was computed.
    return flag(torch.stack(alike).any() & where.any() & ~where.all())


def is_plain(value: Any) -> bool:
    """Anything but a tensor that cannot be read here and alone.

    To look at a distributed one would be a collective call, of which other ranks do not know.
    """
    if not isinstance(value, torch.Tensor):
        return True
    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided


def _rows_of(weights: torch.Tensor) -> int:
    """How many of the first rows are looked at, of weights as `of_softmax` takes them."""
    cells = weights.shape[-1] * (weights.shape[-2] if weights.dim() > 2 else 1)
    rows: int = min(len(weights), MOST_ROWS, MOST_CELLS // max(cells, 1))
    return rows


def of_softmax(weights: torch.Tensor) -> torch.Tensor | None:
    """[rows, queries, keys] of [..., queries, keys]: of the first rows, by any head.

    Also of [rows, keys] and [rows, keys, 1], by which a sequence is averaged.
    """
    rows = _rows_of(weights)
    if rows == 0 or weights.numel() == 0:
        return None
    if weights.dim() == 3 and weights.shape[2] == 1:
        weights = weights.squeeze(2)
    if weights.dim() == 2:
        weights = weights.unsqueeze(1)
    shown = weights[:rows] > _NOTHING
    while shown.dim() > 3:
        shown = shown.any(1)
    return shown


def blind_by(scores: torch.Tensor) -> torch.Tensor:
    """[rows, queries] of [..., queries, keys], all heads: those all of whose scores are to hide.

    After a softmax that hides none of them: it only compares them with each other.
    """
    blind = scores[: _rows_of(scores)].amax(-1) <= _HIDDEN
    while blind.dim() > 2:
        blind = blind.all(1)
    return blind


def left_by(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], weights: torch.Tensor
) -> torch.Tensor:
    """What one of HIDING leaves of the first rows of `weights` if each of them is 1.

    The result itself does not say it: a dropout before has zeros of its own, at random.
    """
    rows, heads = _rows_of(weights), 1
    if weights.dim() == 4:  # as few of them as tell it
        others = (x for x in (*args, *kwargs.values()) if x is not weights)
        heads = max((x.shape[-3] for x in others if getattr(x, "ndim", 0) > 2), default=1)
    shape = (rows, heads, *weights.shape[2:]) if weights.dim() == 4 else (rows, *weights.shape[1:])
    ones = weights.new_ones(shape)

    def instead_of(value: Any) -> Any:
        if value is weights:
            return ones
        return value[:rows] if getattr(value, "ndim", 0) == weights.dim() else value

    given = [instead_of(value) for value in args]
    if function in HIDING_IN_PLACE and given[0] is not ones:
        given[0] = given[0].clone()
    named = {name: instead_of(value) for name, value in kwargs.items() if name != "out"}
    left: torch.Tensor = function(*given, **named)
    return left


def of_multi_head(args: Any, kwargs: Any) -> tuple[torch.Tensor | None, list[Flag]]:
    """What multi-head attention lets through, [rows, queries, keys], in any head.

    And of each mask, whether it is added to scores by mistake.
    """
    given = _multi_head_signature.bind(*args, **kwargs).arguments
    query, key = given["query"], given["key"]
    queries, keys = query.shape[0], key.shape[0]
    batch = query.shape[1] if query.dim() == 3 else 1
    if not 0 < queries * keys <= MOST_CELLS:
        return None, []
    rows = max(1, min(batch, MOST_ROWS, MOST_CELLS // (queries * keys)))
    shown = torch.ones(rows, queries, keys, dtype=torch.bool, device=query.device)
    mask, padding = given.get("attn_mask"), given.get("key_padding_mask")
    if mask is not None:
        seen = _shown(mask, shows=False)
        if seen.dim() == 3:
            seen = seen.reshape(batch, -1, queries, keys)[:rows].any(1)
        shown = shown & seen
    if padding is not None:
        shown = shown & _shown(padding.reshape(batch, -1), shows=False)[:rows, None, :]
    return shown, [_is_added_by_mistake(mask), _is_added_by_mistake(padding)]


def masks_given(function: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Those that attention in one call is given."""
    if function is MULTI_HEAD:
        given = _multi_head_signature.bind(*args, **kwargs).arguments
        masks = [given.get("attn_mask"), given.get("key_padding_mask")]
    else:
        masks = [args[3] if len(args) > 3 else kwargs.get("attn_mask")]
    return [mask for mask in masks if isinstance(mask, torch.Tensor) and not mask.requires_grad]


def is_repeated_by_head(args: Any, kwargs: Any) -> Flag | None:
    """Whether a mask of [batch * heads, queries, keys] was made by `repeat`. None: there is none.

    Row b * heads + h is that of head h of sample b. Where a mask of each sample is repeated as a
    whole, the mask comes again after as many rows as there are samples, and heads of one sample
    differ. One of each head alone, the same for all samples, comes again after as many as there
    are heads.
    """
    given = _multi_head_signature.bind(*args, **kwargs).arguments
    query, mask = given["query"], given.get("attn_mask")
    batch = query.shape[1] if query.dim() == 3 else 1
    if mask is None or mask.dim() != 3 or batch < 2 or not 0 < mask.numel() <= MOST_CELLS:
        return None
    heads = len(mask) // batch
    if heads < 2 or heads * batch != len(mask) or capturing_graph(mask):
        return None
    comes_again = flag((mask[batch:] == mask[:-batch]).all())
    if comes_again is False:
        return False
    return flag(comes_again & ~(mask[heads:] == mask[:-heads]).all())


def of_scaled_dot_product(args: Any, kwargs: Any) -> tuple[torch.Tensor | None, list[Flag]]:
    """The same of `scaled_dot_product_attention`."""
    query, key = (args[at] if len(args) > at else kwargs[name] for at, name in enumerate(_QK))
    mask = args[3] if len(args) > 3 else kwargs.get("attn_mask")
    is_causal = args[5] if len(args) > 5 else kwargs.get("is_causal", False)
    queries, keys = query.shape[-2], key.shape[-2]
    if not 0 < queries * keys <= MOST_CELLS or query.dim() < 3:
        return None, []
    rows = max(1, min(query.shape[0], MOST_ROWS, MOST_CELLS // (queries * keys)))
    shown = torch.ones(rows, queries, keys, dtype=torch.bool, device=query.device)
    if is_causal:
        return shown.tril(), []
    if mask is not None:
        while mask.dim() < query.dim():
            mask = mask.unsqueeze(0)
        seen = _shown(mask[:rows], shows=True)
        while seen.dim() > 3:
            seen = seen.any(1)
        shown = shown & seen
    return shown, [_is_added_by_mistake(mask)]
