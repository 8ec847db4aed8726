"""What convolutions and pooling over a sequence show of later positions, and what moves it along.

Of a convolution that adds nothing itself, what a call before it padded tells where its positions
are; of one that pads both ends, what is cut off what it returns. Weights are looked at where they
are; what is kept ends with the step.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.nn import functional

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import may_read

Flag: TypeAlias = "bool | torch.Tensor"  # of a device: a tensor of one truth value


class Along(NamedTuple):
    """What a call shows of a sequence of this length."""

    length: int
    sees_later: Flag
    is_round: bool = False  # what it sees of them is what the first positions see of the last ones


class Cut(NamedTuple):
    """What an earlier call shows, now that positions were cut off what it returned."""

    number: int
    along: Along


class _Padded(NamedTuple):
    """What was added at both ends of a sequence, before a convolution that adds nothing itself."""

    result: weakref.ref[torch.Tensor]
    front: int
    back: int


class _Longer(NamedTuple):
    """What a convolution returned that padded both ends by so much, until it is cut."""

    result: weakref.ref[torch.Tensor]
    number: int  # by which its call is known
    before: int  # the length of what it was given
    padding: int  # at the front
    dilation: int
    weight: torch.Tensor  # without gradient


# Means and maxima of neighbours; the second by the word that leaves out the places of the maxima.
POOLING: frozenset[Any] = frozenset(
    {torch.avg_pool1d, torch.max_pool1d, functional.avg_pool1d, functional.max_pool1d}
)


def _number(value: Any) -> int | None:
    """Of one dimension: the number, or the only one of a tuple."""
    if isinstance(value, (tuple, list)) and len(value) == 1:
        value = value[0]
    return value if isinstance(value, int) else None


def flag(found: torch.Tensor) -> Flag:
    """Whether that is True, where it is at hand."""
    return bool(found) if may_read(found) else found


class Convolutions:
    """Those of one step."""

    def __init__(self) -> None:
        self._padded: dict[int, _Padded] = {}  # by the results' ids
        self._longer: dict[int, _Longer] = {}  # the same
        self._made: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}  # by calls that are known

    def called(self, args: Any, kwargs: Any, result: Any, number: int) -> Along | None:
        """`torch.conv1d` was called. `number`: by which `cut` names it later."""
        given = args[0] if args else kwargs.get("input")
        weight = args[1] if len(args) > 1 else kwargs.get("weight")
        if not isinstance(given, torch.Tensor) or not isinstance(result, torch.Tensor):
            return None
        if weight is None or weight.shape[-1] < 2 or given.dim() != 3:
            return None
        if capturing_graph(weight):
            return None
        before, after = given.shape[-1], result.shape[-1]
        # As long as before it has looked to both sides. Else it was padded on one side first, or
        # what is too much is cut off at one side later; or the later half of its weight is masked.
        middle = weight.shape[-1] // 2
        sees_both = before == after
        padded = self._padded.get(id(given))
        if padded is not None and padded.result() is given and before > after:
            # Padded by a call of its own: a position is where it was before that.
            sees_both = before - after == padded.front + padded.back
            middle = padded.front * (weight.shape[-1] - 1) // (before - after)
        sees_later = flag(weight.detach()[..., middle + 1 :].any()) if sees_both else False
        self._made[id(result)] = weakref.ref(result), number
        if before < after and padded is None:
            self._keep_longer(args, kwargs, result, weight, before, number)
        return Along(min(before, after), sees_later)

    def moved_on(self, args: Any, kwargs: Any) -> int | None:
        """The call whose result `pad` puts something in front of: what it sees may come earlier."""
        given = args[0] if args else kwargs.get("input")
        pad = args[1] if len(args) > 1 else kwargs["pad"]
        known = self._made.get(id(given))
        return known[1] if known is not None and known[0]() is given and pad[0] > 0 else None

    def pooled(self, args: Any, kwargs: Any, result: Any, number: int) -> Along | None:
        """Of one of POOLING: a convolution all of whose weights count."""
        given = args[0] if args else kwargs.get("input")
        width = _number(args[1] if len(args) > 1 else kwargs.get("kernel_size"))
        stride = args[2] if len(args) > 2 else kwargs.get("stride")
        if not isinstance(given, torch.Tensor) or not isinstance(result, torch.Tensor):
            return None
        if given.dim() != 3 or width is None or width < 2 or _number(stride) != 1:
            return None
        before, after = given.shape[-1], result.shape[-1]
        # Of as many features as positions nobody knows over which it goes.
        if given.shape[1] in (before, after):
            return None
        self._made[id(result)] = weakref.ref(result), number
        if before == after:
            return Along(before, sees_later=True)
        padded = self._padded.get(id(given))
        if padded is None or padded.result() is not given or before <= after:
            return None
        is_whole = before - after == padded.front + padded.back
        return Along(after, sees_later=is_whole and padded.back > 0)

    def _keep_longer(
        self,
        args: Any,
        kwargs: Any,
        result: torch.Tensor,
        weight: torch.Tensor,
        before: int,
        number: int,
    ) -> None:
        """A convolution returned more positions than it was given."""
        names = ("stride", "padding", "dilation")
        of = [
            args[3 + at] if len(args) > 3 + at else kwargs.get(name, int(name != "padding"))
            for at, name in enumerate(names)
        ]
        numbers = [x[0] if isinstance(x, (tuple, list)) else x for x in of]
        if numbers[0] == 1 and all(isinstance(x, int) for x in numbers):
            self._longer[id(result)] = _Longer(
                weakref.ref(result),
                number,
                before,
                padding=int(numbers[1]),
                dilation=int(numbers[2]),
                weight=weight.detach(),
            )

    def cut(self, args: Any) -> Cut | None:
        """Positions are taken out of what a convolution returned: which of its own it sees then."""
        if len(args) != 2:
            return None
        given: Any = args[0]
        known = self._longer.get(id(given))
        if known is None or id(known.result()) != id(given):
            return None
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        if not all(each is ... or isinstance(each, slice) for each in index):
            return None
        if len(index) < 2 or index[-1] is ...:
            return None
        is_last = len(index) == given.dim() or (index[0] is ... and len(index) == 2)
        if not is_last or any(each not in (..., slice(None)) for each in index[:-1]):
            return None
        start, end, step = index[-1].indices(given.shape[-1])
        if step != 1 or end - start != known.before or capturing_graph(known.weight):
            return None
        # Of a position's own value tells the tap that lies this far behind the first one.
        own = (known.padding - start) // known.dilation
        with own_operations():
            later = known.weight[..., max(0, own + 1) :]
            sees_later = flag(later.any()) if later.numel() > 0 else False
        return Cut(known.number, Along(known.before, sees_later))

    def shifted(self, function: Any, args: Any, kwargs: Any, result: Any) -> Along | None:
        """Vectors were moved along one dimension: cut off at one end, and added to at the other."""
        given = args[0] if args else kwargs.get("input")
        if not isinstance(given, torch.Tensor) or not given.is_floating_point() or given.dim() != 3:
            return None
        if function is functional.pad:
            pad = args[1] if len(args) > 1 else kwargs["pad"]
            ends = list(zip(pad[::2], pad[1::2], strict=False))  # of the last dimension first
            if len(ends) == 1 and min(ends[0]) >= 0:
                self._padded[id(result)] = _Padded(weakref.ref(result), *ends[0])
            moved = [(2 - at, end[0]) for at, end in enumerate(ends) if end != (0, 0)]
            if any(front + back != 0 for front, back in ends):
                return None
        else:
            moves = args[1] if len(args) > 1 else kwargs["shifts"]
            dims = (args[2] if len(args) > 2 else kwargs.get("dims")) or ()
            moves = moves if isinstance(moves, (tuple, list)) else (moves,)
            dims = dims if isinstance(dims, (tuple, list)) else (dims,)
            moved = [(dim % 3, by) for dim, by in zip(dims, moves, strict=False) if by != 0]
        if len(moved) != 1:
            return None
        along, by = moved[0]
        return Along(int(given.shape[along]), sees_later=by < 0)
