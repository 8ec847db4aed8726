"""What a model lets the positions of a sequence see: later ones, padding, or the right ones.

At a few steps the functions that carry something from one position to another are listened to:
attention, recurrent layers, convolutions over one dimension, shifts, matrices that mix positions,
and softmax, for attention that is written out. Of attention the mask says which positions are seen,
of a softmax that is written out its zeros. And the model's inputs are compared with the targets of
the loss: where each target is the next value of an input, nothing may see what comes later.

Copies of the first rows of inputs and targets, what masks show, and numbers are kept until the step
ends. Of a device they come over then (`base.later`), and are compared in host memory.
"""

from __future__ import annotations

import inspect
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import brought
from traindbg.hooks.torch.base.nodes import next_nodes
from traindbg.hooks.torch.data.convolutions import POOLING, Along, Convolutions, Flag, flag
from traindbg.hooks.torch.data.next_values import Given, Next, Target, may_be_next, next_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from traindbg.hooks.torch.base.later import Later

_MOST_LOOKS = 6  # steps
_MOST_INPUTS = 4
_MOST_VALUES = 1 << 16  # of an input that are copied
_MOST_CELLS = 1 << 22  # of a mask that are looked at
_MOST_CALLS = 64  # in a step
_MOST_KEPT = 1 << 23  # cells of masks that are kept until the step ends
_MOST_ROWS = 16  # of a batch whose masks are looked at
_FEWEST = 16  # values that are compared, positions that are looked at
_FEWEST_KNOWN = 3  # positions whose next value is a target in all rows
_HIDDEN = -100.0  # what is added to a score where a position is hidden, or less
_NOTHING = 1e-30  # of a weight, or less
_TINY = -1e-6  # so much added to a score, or less than that below 0, hides nothing
_MOST_NODES = 32  # of a graph that are gone through
_MOST_TARGETS = 8  # of a step, that may be the next values of an input

_multi_head: Any = functional.multi_head_attention_forward
_multi_head_signature = inspect.signature(_multi_head)
_sdpa: Any = functional.scaled_dot_product_attention
_SOFTMAXES = frozenset({functional.softmax, torch.softmax, torch.Tensor.softmax})
_RECURRENT = frozenset(
    getattr(torch, name) for name in ("gru", "lstm", "rnn_relu", "rnn_tanh") if hasattr(torch, name)
)
_ROLLS = frozenset({torch.roll, torch.Tensor.roll})


def _named(*names: str) -> frozenset[Any]:
    homes = (torch, torch.Tensor, functional)
    return frozenset(getattr(home, name) for name in names for home in homes if hasattr(home, name))


# By which weights may be hidden after the softmax; what they may go through before that.
_HIDING_IN_PLACE = _named("mul_", "__imul__", "tril_", "masked_fill_")
_HIDING = _HIDING_IN_PLACE | _named(
    "mul", "multiply", "__mul__", "__rmul__", "tril", "masked_fill", "where"
)
_PASSING = _named(
    "div", "div_", "__truediv__", "true_divide", "dropout", "dropout_", "clone", "contiguous",
    "float", "to", "type_as",
)  # fmt: skip
# By which scores are given a mask before the softmax.
_ADDING = _named("add", "add_", "__add__", "__radd__", "__iadd__")
# By which masked scores are replaced by a number.
_FILLING = _named("masked_fill", "masked_fill_", "where")
_PRODUCTS = _named("matmul", "__matmul__")
_CUTTING = frozenset({torch.Tensor.__getitem__})
MIXERS: frozenset[Any] = (
    frozenset({_multi_head, _sdpa, torch.conv1d, functional.linear, functional.pad})
    | _PRODUCTS
    | _SOFTMAXES
    | _RECURRENT
    | _ROLLS
    | _HIDING
    | _PASSING
    | _ADDING
    | _CUTTING
    | POOLING
)


class _Sight(NamedTuple):
    """What positions see of their sequence: as much of [queries, keys] as is asked of it later."""

    nexts: torch.Tensor  # [length - 1]: whether each but the last one sees the next
    later: torch.Tensor  # [length - 1]: how many later ones it sees
    earlier: torch.Tensor  # one truth value: whether any of all sees an earlier one

    def through(self, other: _Sight) -> _Sight:
        """What is left of it where positions are hidden once more."""
        return _Sight(
            self.nexts & other.nexts,
            torch.minimum(self.later, other.later),
            self.earlier & other.earlier,
        )


class _Call(NamedTuple):
    """A call that carries something along a sequence of this length."""

    place: str
    length: int
    sees_later: Flag = False
    sight: _Sight | None = None  # of attention, which says it then
    is_matrix: bool = False  # that is applied to positions as if they were features
    across: int = 0  # the other dimension of what a matrix is given


class _Sum(NamedTuple):
    """Scores and what has no gradient, a mask perhaps."""

    result: weakref.ref[torch.Tensor]
    added: torch.Tensor


class _Weights(NamedTuple):
    """What a softmax that is written out has returned, until it is used."""

    result: weakref.ref[torch.Tensor]
    call: int | None  # the places of what is known of it, in lists
    mask: int | None
    is_turned: bool  # [keys, queries]


class _Mask(NamedTuple):
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


def _is_added_by_mistake(mask: torch.Tensor | None) -> Flag:
    """A mask of the numbers 0 and 1, which hide nothing where they are added to scores."""
    if mask is None or not mask.is_floating_point() or mask.numel() > _MOST_CELLS:
        return False
    return flag(((mask == 0) | (mask == 1)).all() & (mask == 0).any() & (mask == 1).any())


def _is_mask_added_to_scores(mask: torch.Tensor, scores: torch.Tensor) -> Flag:
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


def _hides_next_to_nothing(mask: torch.Tensor | None) -> Flag:
    """A mask of 0 and one number just below it: -1e-9, say, where -1e9 was meant."""
    if mask is None or not mask.is_floating_point() or not 0 < mask.numel() <= _MOST_CELLS:
        return False
    mask = mask.detach()
    least = mask.amin()
    is_tiny = (least < 0) & (least >= _TINY)
    return flag(is_tiny & ((mask == 0) | (mask == least)).all() & (mask == 0).any())


def _is_filled_with_tiny(function: Any, args: Any, kwargs: Any, result: torch.Tensor) -> Flag:
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
    if not _is_plain(where) or capturing_graph(where) or not 0 < where.numel() <= _MOST_CELLS:
        return False
    where = where.detach().bool()
    alike = [(where == where.narrow(axis, 0, 1)).all() for axis in axes]
    if not alike:
        return False
    # One that hides nothing, or everything, is alike in all of them however it was computed.
    return flag(torch.stack(alike).any() & where.any() & ~where.all())


def _mixing_matrix(function: Any, args: Any, kwargs: Any) -> tuple[torch.Tensor, int] | None:
    """[length, length], by which positions are mixed, as in the spatial gates of a gMLP or a mixer.

    And how many features each position has.

    A layer's weight is such a one where it is given [..., features, positions]: a view that was
    turned, or the channels of a convolution with one tap. None where that is not certain, because
    another dimension is as long.
    """
    both = [
        *args[:2],
        *(kwargs[name] for name in ("input", "other", "weight") if name in kwargs),
    ][:2]
    if len(both) < 2 or not all(isinstance(each, torch.Tensor) for each in both):
        return None
    given, weight = both
    along = -1
    if function in _PRODUCTS:
        given, weight, along = weight, given, -2
    elif function is torch.conv1d:
        along = -2
        if weight.dim() != 3 or weight.shape[2] != 1:
            return None
        weight = weight.squeeze(2)
    if given.dim() != 3 or weight.dim() != 2 or weight.shape[0] != weight.shape[1]:
        return None
    length, width = given.shape[along], given.shape[-3 - along]
    is_turned = along == -2 or given.stride(-1) != 1
    if length != len(weight) or width == length or not is_turned or weight.numel() > _MOST_CELLS:
        return None
    return weight, width


def _is_plain(value: Any) -> bool:
    """Anything but a tensor that cannot be read here and alone.

    To look at a distributed one would be a collective call, of which other ranks do not know.
    """
    if not isinstance(value, torch.Tensor):
        return True
    return type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout is torch.strided


_OF_WEIGHTS = (
    "AliasBackward", "CloneBackward", "ExpandBackward", "PermuteBackward", "ReshapeAliasBackward",
    "TBackward", "ToCopyBackward", "TransposeBackward", "UnsafeViewBackward", "UnsqueezeBackward",
    "ViewBackward", "WeightNormInterfaceBackward",
)  # fmt: skip


def _is_weight(node: Any) -> bool:
    """A parameter, as it is, or turned, cast or normalised."""
    for _ in range(_MOST_NODES):
        name = str(node.name())
        if "AccumulateGrad" in name:
            return True
        if not name.startswith(_OF_WEIGHTS) or not next_nodes(node):
            return False
        node = next_nodes(node)[0]
    return False


def compares_positions(scores: Any) -> bool:
    """Whether a node computes a number for each pair of positions: scores of attention.

    They come of a product of two tensors of which none is a parameter, or of a sum over what was
    made of each pair. A layer's output is none, though it may be as wide as the sequence is long.
    """
    nodes, seen = [scores], 0
    while nodes and seen < _MOST_NODES:
        node = nodes.pop()
        seen += 1
        name = node.name()
        if name in ("BaddbmmBackward0", "SumBackward1"):
            return True
        if name.startswith("Squeeze"):  # of one score for each pair, by a layer
            return True
        if name in ("MmBackward0", "BmmBackward0"):
            if len(next_nodes(node)) == 2 and not any(map(_is_weight, next_nodes(node))):
                return True
            continue
        if name.startswith(("Addmm", "Linear", "Embedding", "NativeLayerNorm", "Softmax")):
            continue
        nodes += next_nodes(node)
    return False


def _rows_of(weights: torch.Tensor) -> int:
    """How many of the first rows are looked at, of weights as `_of_softmax` takes them."""
    cells = weights.shape[-1] * (weights.shape[-2] if weights.dim() > 2 else 1)
    rows: int = min(len(weights), _MOST_ROWS, _MOST_CELLS // max(cells, 1))
    return rows


def _of_softmax(weights: torch.Tensor) -> torch.Tensor | None:
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


def _blind_by(scores: torch.Tensor) -> torch.Tensor:
    """[rows, queries] of [..., queries, keys], all heads: those all of whose scores are to hide.

    After a softmax that hides none of them: it only compares them with each other.
    """
    blind = scores[: _rows_of(scores)].amax(-1) <= _HIDDEN
    while blind.dim() > 2:
        blind = blind.all(1)
    return blind


def _left_by(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], weights: torch.Tensor
) -> torch.Tensor:
    """What one of _HIDING leaves of the first rows of `weights` if each of them is 1.

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
    if function in _HIDING_IN_PLACE and given[0] is not ones:
        given[0] = given[0].clone()
    named = {name: instead_of(value) for name, value in kwargs.items() if name != "out"}
    left: torch.Tensor = function(*given, **named)
    return left


def _of_multi_head(args: Any, kwargs: Any) -> tuple[torch.Tensor | None, list[Flag]]:
    given = _multi_head_signature.bind(*args, **kwargs).arguments
    query, key = given["query"], given["key"]
    queries, keys = query.shape[0], key.shape[0]
    batch = query.shape[1] if query.dim() == 3 else 1
    if not 0 < queries * keys <= _MOST_CELLS:
        return None, []
    rows = max(1, min(batch, _MOST_ROWS, _MOST_CELLS // (queries * keys)))
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


def _masks_given(function: Any, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """Those that attention in one call is given."""
    if function is _multi_head:
        given = _multi_head_signature.bind(*args, **kwargs).arguments
        masks = [given.get("attn_mask"), given.get("key_padding_mask")]
    else:
        masks = [args[3] if len(args) > 3 else kwargs.get("attn_mask")]
    return [mask for mask in masks if isinstance(mask, torch.Tensor) and not mask.requires_grad]


def _is_repeated(args: Any, kwargs: Any) -> Flag | None:
    """Whether a mask of [batch * heads, queries, keys] was made by `repeat`. None: there is none.

    Row b * heads + h is that of head h of sample b. Where a mask of each sample is repeated as a
    whole, the mask comes again after as many rows as there are samples, and heads of one sample
    differ. One of each head alone, the same for all samples, comes again after as many as there
    are heads.
    """
    given = _multi_head_signature.bind(*args, **kwargs).arguments
    query, mask = given["query"], given.get("attn_mask")
    batch = query.shape[1] if query.dim() == 3 else 1
    if mask is None or mask.dim() != 3 or batch < 2 or not 0 < mask.numel() <= _MOST_CELLS:
        return None
    heads = len(mask) // batch
    if heads < 2 or heads * batch != len(mask) or capturing_graph(mask):
        return None
    comes_again = flag((mask[batch:] == mask[:-batch]).all())
    if comes_again is False:
        return False
    return flag(comes_again & ~(mask[heads:] == mask[:-heads]).all())


def _of_scaled_dot_product(args: Any, kwargs: Any) -> tuple[torch.Tensor | None, list[Flag]]:
    query, key = (args[at] if len(args) > at else kwargs[name] for at, name in enumerate(_QK))
    mask = args[3] if len(args) > 3 else kwargs.get("attn_mask")
    is_causal = args[5] if len(args) > 5 else kwargs.get("is_causal", False)
    queries, keys = query.shape[-2], key.shape[-2]
    if not 0 < queries * keys <= _MOST_CELLS or query.dim() < 3:
        return None, []
    rows = max(1, min(query.shape[0], _MOST_ROWS, _MOST_CELLS // (queries * keys)))
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


_QK = ("query", "key")


def _sight_of(shown: torch.Tensor) -> _Sight:
    """Of [rows, positions, positions], in any row."""
    shown = shown.any(0)
    # No view, which would keep all of it.
    return _Sight(shown.diagonal(1).clone(), shown.triu(1)[:-1].sum(1), shown.tril(-1).any())


def _sees_which(sight: _Sight, known: torch.Tensor) -> tuple[bool, bool]:
    """Whether positions see the next one, or half of all later ones; whether any earlier one.

    Of those positions whose target is `known`: what a prefix sees is nobody's loss.
    """
    length = len(sight.nexts) + 1
    asked = known[: length - 1]
    nexts = (sight.nexts & asked).sum() / asked.sum()
    all_later = (torch.arange(length - 1, 0, -1, device=known.device) * asked).sum()
    later = (sight.later * asked).sum() / all_later
    return bool(torch.maximum(nexts, later) >= 0.5), bool(sight.earlier)


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


def _without_token(shown: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What is shown of an input to which the model added one position, in front or behind."""
    if shown.shape[1] == shown.shape[2]:
        return shown[:, 1:, 1:], shown[:, :-1, :-1]
    return shown[:, :, 1:], shown[:, :, :-1]


def _how_wrong(shown: torch.Tensor, padding: torch.Tensor) -> tuple[float, float] | None:
    """How far, from 0 to 1, the padding is seen and all else is hidden; and whether it is mirrored.

    Mirrored, 1 or 0: in every row as many positions are hidden as it has padding, at its other end.
    None: nothing to tell it by.
    """
    rows = min(len(shown), len(padding))
    if len(shown) == 1:
        shown = shown.expand(len(padding[:_MOST_ROWS]), -1, -1)
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


def _lengths_said(mask: torch.Tensor) -> Iterator[torch.Tensor]:
    """Where rows are padded, as a mask of truth values may say: True at one of their ends."""
    for padding in (mask, ~mask):
        for turned in (padding, padding.flip(1)):
            run = turned.flip(1).long().cumprod(1).flip(1).bool()
            if torch.equal(run, turned) and turned.sum(1).unique().numel() > 1:
                yield padding


def _hides_queries(mask: _Mask, padding: torch.Tensor) -> float | None:
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


def _is_of_others(mask: torch.Tensor, padding: torch.Tensor) -> float | None:
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


class _Seen:
    """What was seen of one step. Its tensors are where they were computed."""

    def __init__(
        self,
        inputs: Sequence[Given],
        calls: Sequence[_Call],
        masks: Sequence[_Mask],
        added: Sequence[tuple[str, list[Flag]]],
        repeated: Sequence[tuple[str, Flag]],
        tiny: Sequence[tuple[str, Flag]],
        targets: Sequence[Target],
        is_all: bool,
    ) -> None:
        self._is_all = is_all  # no other inputs were given, to no other model
        self._inputs, self._calls, self._masks = inputs, calls, masks
        self._added, self._repeated, self._targets = added, repeated, targets
        self._tiny = tiny

    @property
    def tensors(self) -> list[torch.Tensor]:
        """All that tells something."""
        found: list[Any] = []
        if self._masks or self._targets:
            found += [given.values for given in self._inputs]
        for call in self._calls if self._targets else ():
            found += [call.sees_later, *(call.sight or ())]
        found += [tensor for mask in self._masks for tensor in (mask.shown, mask.blind)]
        found += [flag for _, flags in self._added for flag in flags]
        found += [flag for _, flag in (*self._repeated, *self._tiny)]
        for target in self._targets:
            found += [target.values, target.margin]
        return [value for value in found if isinstance(value, torch.Tensor)]

    def there(self, values: Sequence[torch.Tensor]) -> _Seen:
        """The same in host memory. `values`: of `tensors`."""
        known = dict(zip(map(id, self.tensors), values, strict=True))

        def of(value: Any) -> Any:
            return known.get(id(value), value)

        return _Seen(
            [given._replace(values=of(given.values)) for given in self._inputs],
            [
                call._replace(
                    sees_later=of(call.sees_later),
                    sight=None if call.sight is None else _Sight(*map(of, call.sight)),
                )
                for call in self._calls
            ],
            [_Mask(mask.place, of(mask.shown), of(mask.blind)) for mask in self._masks],
            [(place, [of(flag) for flag in flags]) for place, flags in self._added],
            [(place, of(flag)) for place, flag in self._repeated],
            [(place, of(flag)) for place, flag in self._tiny],
            [
                target._replace(values=of(target.values), margin=of(target.margin))
                for target in self._targets
            ],
            self._is_all,
        )

    def facts(self, values: Sequence[torch.Tensor]) -> list[tuple[str, float, str]]:
        """Name, value and place of each. `values`: of `tensors`, in host memory."""
        with own_operations():
            here = self.there(values)
            return [*here._of_padding(), *here._of_later_positions()]

    def next(self) -> tuple[Target, Next] | None:
        """The first target that is the next values of an input."""
        for target in self._targets:
            found = next_of(self._inputs[target.given], target)
            if found is not None:
                return target, found
        return None

    def _has_twin(self, target: Target, length: int) -> bool:
        """Whether another input is as long as the one that has these next values.

        Or a sequence of vectors, which may be made as long.
        """
        given = self._inputs[target.given]
        others = [x for x in self._inputs[: target.inputs] if x is not given]
        return any(
            other.values.dim() == 3
            or (
                length in (*other.values.shape, other.rows)
                and other.values.dim() == given.values.dim()
            )
            for other in others
        )

    def _compare_with_padding(self) -> tuple[tuple[float, float], str] | None:
        """How wrong the worst mask is (`_how_wrong`), and its place. None: no padding."""
        worst: tuple[tuple[float, float], str] | None = None
        paddings: dict[tuple[int, bool], torch.Tensor | None] = {}
        for place, shown, _ in self._masks:
            keys = shown.shape[2]
            for number, given in enumerate(self._inputs):
                x = given.values
                is_turned = x.dim() == 2 and x.shape[1] != keys and x.shape[0] == keys == given.rows
                has_token = x.shape[1] == keys - 1 and not is_turned  # [CLS], say
                if x.dim() > 3 or (x.shape[1] != keys and not is_turned and not has_token):
                    continue
                if (number, is_turned) not in paddings:
                    paddings[number, is_turned] = padding_of(x.transpose(0, 1) if is_turned else x)
                padding = paddings[number, is_turned]
                if padding is None:
                    continue
                for cut in _without_token(shown) if has_token else (shown,):
                    wrong = _how_wrong(cut, padding)
                    if wrong is not None and (worst is None or max(wrong) > max(worst[0])):
                        worst = wrong, place
        return worst

    def _masks_of_queries(self) -> tuple[bool, str] | None:
        """Whether a mask hides what padding sees, not the padding; where. None: nothing is padded.

        As a mask of shape (batch, 1, length, 1) does, where (batch, 1, 1, length) is meant.
        """
        asked: tuple[bool, str] | None = None
        if sum(not says_yes_or_no(given.values) for given in self._inputs) > 1:
            return None  # keys may be those of another one
        for mask in self._masks:
            keys = mask.shown.shape[2]
            for given in self._inputs:
                x = given.values
                if x.dim() < 2 or x.shape[1] not in (keys, keys - 1):
                    continue
                if says_yes_or_no(x):
                    paddings = list(_lengths_said(x.bool())) if x.dim() == 2 else []
                else:
                    padding = padding_of(x) if x.dim() < 4 else None
                    paddings = [] if padding is None else [padding]
                for padding in paddings:
                    # With a position of the model's own in front or behind: [CLS], say.
                    ends = ((1, 0), (0, 1)) if x.shape[1] == keys - 1 else ((0, 0),)
                    for end in ends:
                        whole = functional.pad(padding, end, value=False)
                        found = _hides_queries(mask, whole)
                        if found is not None and not (asked and asked[0]):
                            asked = found > 0, mask.place
        return asked

    def _given_with_other_rows(self) -> float | None:
        """Of the model's inputs: whether a mask among them is that of other rows than the ids.

        As they were given, whatever the model makes of their order. None: that cannot be told, as
        where something else is given that a mask may belong to.
        """
        ids = [x.values for x in self._inputs if not says_yes_or_no(x.values)]
        masks = [x.values.bool() for x in self._inputs if says_yes_or_no(x.values)]
        is_whole = self._is_all and all(len(x.values) == x.rows for x in self._inputs)
        if not (is_whole and ids and masks):
            return None
        shapes = {x.shape for x in (*ids, *masks)}
        if len(shapes) != 1 or ids[0].dim() != 2:
            return None
        paddings = [padding_of(x) for x in ids]
        known = [padding for padding in paddings if padding is not None]
        if len(known) < len(paddings):
            return None
        found = 0.0
        for mask in masks:
            told = [_is_of_others(mask, padding) for padding in known]
            if all(told):  # of none of them
                found = 1.0
        return found

    def _of_padding(self) -> Iterator[tuple[str, float, str]]:
        worst = self._compare_with_padding()
        if worst is not None:
            (inverted, mirrored), place = worst
            yield "padding_seen_instead", inverted, place
            yield "padding_mirrored", mirrored, place
            of_others = self._given_with_other_rows()
            if of_others is not None:
                yield "padding_of_other_rows", of_others, place
        of_queries = self._masks_of_queries()
        if of_queries is not None:
            yield "padding_hidden_as_queries", float(of_queries[0]), of_queries[1]
        added = {place: None for place, flags in self._added if any(map(bool, flags))}
        if self._masks or added:
            yield "masks_added", len(added), next(iter(added), "")
        tiny = list(dict.fromkeys(place for place, is_tiny in self._tiny if is_tiny))
        if tiny:
            yield "masks_tiny", len(tiny), tiny[0]
        if self._repeated:
            places = dict.fromkeys((place for place, _ in self._repeated), False)
            for place, is_repeated in self._repeated:
                places[place] = places[place] or bool(is_repeated)
            wrong = [place for place, is_repeated in places.items() if is_repeated]
            yield "masks_repeated", len(wrong), wrong[0] if wrong else ""

    def _of_later_positions(self) -> Iterator[tuple[str, float, str]]:
        found = self.next()
        if found is None:
            return
        length, known = found[1].length, found[1].known
        # Inside, the last position may be left out.
        calls = [call for call in self._calls if call.length in (length, length - 1)]
        # What is as wide as the sequence is long may mix features.
        lengths = (length, length - 1)
        calls = [call for call in calls if not call.is_matrix or call.across not in lengths]
        if len(self._inputs) > 1:  # as long as this one may be the features of another
            calls = [call for call in calls if not call.is_matrix]
        if int(known.sum()) < _FEWEST_KNOWN:
            calls = [call for call in calls if call.sight is None]
        later: list[tuple[str, bool]] = []  # place, and whether earlier ones are seen, too
        for call in calls:
            if call.sight is None:
                sees_later, sees_earlier = bool(call.sees_later), True
            else:
                sees_later, sees_earlier = _sees_which(call.sight, known)
            if sees_later:
                later.append((call.place, sees_earlier))
        # Of several inputs, or channels, one may be what is known of the future: a forecast, say.
        has_others = self._has_twin(found[0], length) or found[1].along == 2
        if has_others and len(later) < len(calls):
            later = []
        if found[1].along == 2 and len(self._inputs) > 1:
            later = []
        if calls:
            yield "later_seen", len(later), later[0][0] if later else ""
            only = [place for place, sees_earlier in later if not sees_earlier]
            yield "only_later_seen", len(only), only[0] if only else ""


class SequenceObserver:
    """What is seen of the sequences of one step after the other. One per recording."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._looks = 0
        self.clear()

    def clear(self) -> None:
        """Drops what was seen of a step."""
        self.is_open = False
        self._inputs: list[Given] = []
        self._calls: list[_Call] = []
        self._added: list[tuple[str, list[Flag]]] = []  # whether one of them holds, by place
        self._repeated: list[tuple[str, Flag]] = []  # masks of each head, by their places
        self._tiny: list[tuple[str, Flag]] = []  # whether masks hide nothing, by their places
        # Scores, by their ids, and whether they hold a number that hides nothing.
        self._filled: dict[int, tuple[weakref.ref[torch.Tensor], Flag]] = {}
        self._masks: list[_Mask] = []
        self._cells = 0
        self._weights: dict[int, _Weights] = {}  # by the results' ids
        self._sums: dict[int, _Sum] = {}  # the same
        self._convolutions = Convolutions()
        self._targets: list[Target] = []
        self._models: set[int] = set()  # that were called, by their ids
        self._is_all = True

    def begin(self, is_due: bool, model: torch.nn.Module, is_alone: bool = True) -> None:
        """A forward pass of the training begins: `model` is called.

        `is_alone`: no other module is trained beside it.

        One of several models adds to what the others of the step have shown; of one that is called
        again only the last pass counts.
        """
        if not is_due or id(model) in self._models:
            self.clear()
        if is_due:
            self._is_all = is_alone and not self._models
            self._models.add(id(model))
        self.is_open = is_due and self._looks < _MOST_LOOKS

    def input_given(self, tensor: torch.Tensor) -> None:
        """One of the model's inputs, in their order."""
        if not self.is_open or tensor.dim() < 2:
            return
        rows, kept = tensor.shape[0], 0
        if self._is_looked_at(tensor):
            kept = min(rows, _MOST_VALUES * rows // tensor.numel())
        if kept == 0:
            self._is_all = False
            return
        with own_operations():
            values = tensor.detach()[:kept].clone()
            while values.dim() > 2 and values.shape[-1] == 1:
                values = values.squeeze(-1)
        self._inputs.append(Given(values, rows, weakref.ref(tensor)))

    def _is_looked_at(self, tensor: torch.Tensor) -> bool:
        if type(tensor) is not torch.Tensor or tensor.layout is not torch.strided:
            return False
        if tensor.dim() > 4 or tensor.numel() == 0 or tensor.is_complex():
            return False
        return len(self._inputs) < _MOST_INPUTS and not capturing_graph(tensor)

    def called(self, place: str, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """One of MIXERS was called and has returned."""
        if not self.is_open:
            return
        if function in _ADDING:
            self._added_to(args, result)
            return
        if function in _CUTTING:
            self._cut(args)
            return
        if function in _FILLING and isinstance(result, torch.Tensor):
            is_tiny = _is_filled_with_tiny(function, args, kwargs, result)
            if is_tiny is not False:
                self._filled[id(result)] = weakref.ref(result), is_tiny
        if function in _HIDING or function in _PASSING:
            self._weights_used(function, args, kwargs, result)
            return
        if len(self._calls) + len(self._masks) >= _MOST_CALLS:
            return
        if not all(map(_is_plain, (*args, *kwargs.values(), result))):
            return
        if function in POOLING and not torch.is_grad_enabled():
            return  # what is shown of it trains nothing
        with own_operations():
            if function in _RECURRENT:
                self._recurrent_called(place, args)
            elif (matrix := _mixing_matrix(function, args, kwargs)) is not None:
                self._matrix_called(place, *matrix)
            elif function is torch.conv1d:
                called = self._convolutions.called(args, kwargs, result, len(self._calls))
                self._moved(place, called)
            elif function in POOLING:
                pooled = self._convolutions.pooled(args, kwargs, result, len(self._calls))
                self._moved(place, pooled)
            elif function is functional.linear or function in _PRODUCTS:
                return
            elif function is functional.pad or function in _ROLLS:
                number = None if function in _ROLLS else self._convolutions.moved_on(args, kwargs)
                if number is not None and number < len(self._calls):
                    self._calls[number] = self._calls[number]._replace(sees_later=False)
                self._moved(place, self._convolutions.shifted(function, args, kwargs, result))
            elif function in _SOFTMAXES:
                self._softmax_called(place, args, kwargs, result)
            else:
                of = _of_multi_head if function is _multi_head else _of_scaled_dot_product
                shown, is_added = of(args, kwargs)
                self._attention_called(place, shown, is_added)
                for mask in _masks_given(function, args, kwargs):
                    self._say_tiny(place, _hides_next_to_nothing(mask))
                repeated = _is_repeated(args, kwargs) if function is _multi_head else None
                if repeated is not None:
                    self._repeated.append((place, repeated))

    def _added_to(self, args: Any, result: Any) -> None:
        """A sum; what it added is kept, as it may be a mask for the softmax that comes next."""
        if type(result) is not torch.Tensor or result.dim() not in (2, 3, 4):
            return
        if len(args) != 2 or len(self._sums) >= _MOST_CALLS or result.grad_fn is None:
            return
        for added, to in (args, args[::-1]):
            if type(added) is not torch.Tensor or added.requires_grad or added.numel() < _FEWEST:
                continue
            if added.numel() <= _MOST_CELLS and getattr(to, "requires_grad", False):
                self._sums[id(result)] = _Sum(weakref.ref(result), added)
                return

    def _added_mask(self, scores: Any) -> torch.Tensor | None:
        """What was added to the scores that a softmax is given."""
        known = self._sums.get(id(scores))
        if known is None or known.result() is not scores or capturing_graph(scores):
            return None
        return known.added if _is_plain(known.added) else None

    def _is_hardly_masked(self, scores: Any) -> Flag:
        """Whether a softmax is given scores that a mask leaves next to as they were."""
        filled = self._filled.get(id(scores))
        if filled is not None and filled[0]() is scores:
            return filled[1]
        added = self._added_mask(scores)
        is_mask = added is not None and added.shape[-1] == scores.shape[-1]
        return _hides_next_to_nothing(added) if is_mask else False

    def _say_tiny(self, place: str, is_tiny: Flag) -> None:
        if is_tiny is not False:
            self._tiny.append((place, is_tiny))

    def _softmax_called(self, place: str, args: Any, kwargs: Any, result: Any) -> None:
        if not isinstance(result, torch.Tensor) or result.dim() not in (2, 3, 4):
            return
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        if not isinstance(dim, int):
            return
        last, weights = result.dim() - 1, result.detach()
        is_average = result.dim() == 3 and result.shape[2] == 1
        is_turned = dim % (last + 1) == last - 1 and last > 1 and not is_average
        if is_turned:
            weights = weights.transpose(-1, -2)
        elif dim % (last + 1) != last and not (is_average and dim % 3 == 1):
            return
        if weights.shape[-1] == weights.shape[-2]:
            node = result.grad_fn
            if node is None or not any(map(compares_positions, next_nodes(node))):
                return
        calls, masks = len(self._calls), len(self._masks)
        scores = args[0] if args else kwargs.get("input")
        added = None if is_turned else self._added_mask(scores)
        # Whether it is of ones and zeros.
        is_added = False if added is None else _is_mask_added_to_scores(added, scores)
        self._say_tiny(place, self._is_hardly_masked(scores))
        shown, blind = _of_softmax(weights), None
        if shown is not None and _is_plain(scores) and scores.dim() > 2 and not is_average:
            hidden = scores.detach()
            blind = _blind_by(hidden.transpose(-1, -2) if is_turned else hidden)
        self._attention_called(place, shown, [is_added], blind)
        self._weights[id(result)] = _Weights(
            weakref.ref(result),
            calls if len(self._calls) > calls else None,
            masks if len(self._masks) > masks else None,
            is_turned,
        )

    def _weights_used(self, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Weights of a softmax that is written out went through something, a mask perhaps."""
        given = (*args, *kwargs.values())
        for value in given:
            known = self._weights.get(id(value))
            before = known.result() if known is not None else None
            if known is None or before is None or before is not value:
                continue
            if type(result) is not torch.Tensor or result.shape != before.shape:
                return
            if function in _HIDING and not (known.call is None and known.mask is None):
                if capturing_graph(result) or not all(map(_is_plain, given)):
                    return
                with own_operations():
                    self._hidden_after(known, _left_by(function, args, kwargs, before))
            self._weights[id(result)] = known._replace(result=weakref.ref(result))
            return

    def _hidden_after(self, known: _Weights, left: torch.Tensor) -> None:
        """What is `left` of weights says what is shown of them still."""
        shown = _of_softmax(left.transpose(-1, -2) if known.is_turned else left)
        if shown is None:
            return
        if known.call is not None:
            call = self._calls[known.call]
            if call.sight is not None:
                sight = call.sight.through(_sight_of(shown))
                self._calls[known.call] = call._replace(sight=sight)
        if known.mask is not None:
            mask = self._masks[known.mask]
            shown = mask.shown & shown
            blind = mask.blind | ~shown.any(2)
            self._masks[known.mask] = _Mask(mask.place, shown, blind)

    def _recurrent_called(self, place: str, args: Any) -> None:
        if len(args) < 9:
            return
        if isinstance(args[3], (list, tuple)):  # a packed sequence
            length, both = len(args[1]), args[8]
        else:
            length, both = args[0].shape[1 if args[8] else 0], args[7]
        self._calls.append(_Call(place, int(length), bool(both)))

    def _matrix_called(self, place: str, matrix: torch.Tensor, across: int) -> None:
        if not capturing_graph(matrix):
            sees_later = flag(matrix.detach().triu(1).any())
            self._calls.append(_Call(place, len(matrix), sees_later, is_matrix=True, across=across))

    def _moved(self, place: str, found: Along | None) -> None:
        if found is not None:
            self._calls.append(_Call(place, found.length, found.sees_later))

    def _cut(self, args: Any) -> None:
        found = self._convolutions.cut(args)
        if found is not None:
            call = self._calls[found.number]._replace(
                length=found.along.length, sees_later=found.along.sees_later
            )
            self._calls[found.number] = call

    def _attention_called(
        self,
        place: str,
        shown: torch.Tensor | None,
        are_added: list[Flag],
        blind: torch.Tensor | None = None,
    ) -> None:
        perhaps = [is_added for is_added in are_added if is_added is not False]
        if perhaps:
            self._added.append((place, perhaps))
        if shown is None or capturing_graph(shown):
            return
        if shown.shape[1] == shown.shape[2] >= 4:
            self._calls.append(_Call(place, shown.shape[1], sight=_sight_of(shown)))
        if self._cells + shown.numel() <= _MOST_KEPT:
            self._cells += shown.numel()
            self._masks.append(_Mask(place, shown, ~shown.any(2) if blind is None else blind))

    def loss_computed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """By a loss function, in training."""
        if not self.is_open or not self._inputs or len(self._targets) >= _MOST_TARGETS:
            return
        self.target_known(args[1] if len(args) > 1 else kwargs.get("target"))

    def target_known(self, target: Any, margin: torch.Tensor | float = 0.0) -> None:
        """Of a loss, in training. `margin`: by which equal values may differ, a number."""
        if not self.is_open or not self._inputs or len(self._targets) >= _MOST_TARGETS:
            return
        if type(target) is not torch.Tensor or target.layout is not torch.strided:
            return
        if capturing_graph(target):
            return
        with own_operations():
            for number, given in enumerate(self._inputs):
                if target.device != given.values.device or not may_be_next(given, target.numel()):
                    continue
                values = target.detach().reshape(given.rows, -1)[: len(given.values)].clone()
                count = target.numel()
                self._targets.append(Target(number, len(self._inputs), values, count, margin))

    def next_input(self) -> tuple[torch.Tensor, Next] | None:
        """The input whose next values are the targets. Waits for a device."""
        seen = self._seen()
        with own_operations():
            found = seen.there(brought(seen.tensors)).next()
        if found is None:
            return None
        reference = self._inputs[found[0].given].source
        source = None if reference is None else reference()
        return None if source is None else (source, found[1])

    def _seen(self) -> _Seen:
        return _Seen(
            self._inputs,
            self._calls,
            self._masks,
            self._added,
            self._repeated,
            self._tiny,
            self._targets,
            self._is_all,
        )

    def facts(self) -> list[tuple[str, float, str]]:
        """Name, value and place of each, when the step's backward passes are over.

        Waits for a device.
        """
        seen = self._taken()
        return [] if seen is None else seen.facts(brought(seen.tensors))

    def ask(self, later: Later, told: Callable[[list[tuple[str, float, str]]], None]) -> None:
        """Tells the same when the step ends."""
        seen = self._taken()
        if seen is not None:
            later.ask("sequences", seen.tensors, lambda values: told(seen.facts(values)))

    def _taken(self) -> _Seen | None:
        """What was seen of the step, to be told. None: there is nothing to tell."""
        seen = None
        if self.is_open:
            self._looks += 1
            if self._inputs and not capturing_graph(self._inputs[0].values):
                seen = self._seen()
            self.clear()
        return seen
