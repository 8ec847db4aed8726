"""Batches that are chosen anew at each step, and are the same: out of a tensor with many more rows.

    rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))[:40]
    inputs = torch.stack(list(itertools.islice(rows_of_x, 40)))

Training on few rows on purpose looks alike, but there the choice is kept: the numbers of the rows,
or a copy of these. So the rows are looked for among those of all tensors, once, when the input has
been the same for many steps although it is another tensor each time. It is told of where what they
were chosen by is held by nothing from step to step and they lie there in no order, or where they
lie there one after the other and the tensor's rows are kept singly, as items of a list are. The
model must also be evaluated on rows that are others, but none of that tensor.

Numbers in NumPy's arrays are looked for in what the variables of the functions under way lead to.
Objects are gone through once in a training, a few times where such a tensor is found (tenths of a
second), and four million values of a tensor are compared, of eight of them, at most.
"""

from __future__ import annotations

import gc
import inspect
import itertools
import sys
from collections import deque
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import nn

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.parameters import has_memory

if TYPE_CHECKING:
    from types import FrameType

_LOOKS = 10  # in a row, at least, before the search
_STEPS = 60
_TIMES = 8  # rows of the larger tensor, of those of the batch
_FEWEST_ROWS, _MOST_ROWS = 8, 1024  # of the batch
_FEWEST_VALUES = 4  # of a row: fewer may be coordinates
_MOST_VALUES = 4_000_000  # of a tensor that is searched
_MOST_TENSORS = 8  # that are searched
_MOST_NUMBERS = 1 << 24  # in all tensors, lists and arrays that may hold the rows' numbers
_COMPARED = 4  # of these numbers
_COLUMNS = 64  # of a row, that its fingerprint is made of
_OTHERS = 64  # rows of the larger tensor that are looked for in evaluations
_MOST_EVALUATED = 4096  # rows of an evaluated batch
_DISORDER = 0.25  # share of rows that lie before the row that was drawn just before
_MOST_EVALUATIONS = 64  # batches that are looked at after the search
_FRAMES = 64
_DEPTH = 5  # from a variable to an array: attributes and items
_MOST_FOLLOWED = 100_000  # objects
_MOST_PARTS = 512  # of each of them
_NUMBERS = (int, np.int64, np.int32)
_LEAVES = (int, float, str, bytes, bool, type(None), torch.Tensor, nn.Parameter)
_HELD = 3  # references to what only this module holds, as getrefcount counts them in a loop
_HELD_BY_FRAME = 4  # of a copy of its variables: by it, by who asked, and by what counts
_PLAIN = (torch.Tensor, nn.Parameter)
_INTEGER = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_FACTORS = [(pow(0x9E3779B97F4A7C15, k + 1, 2**64) | 1) - 2**63 for k in range(_COLUMNS)]


class _Larger(NamedTuple):
    times: float  # rows, of those of the batch
    others: torch.Tensor  # fingerprints of rows that are not of the batch


def _prints(tensor: torch.Tensor) -> torch.Tensor:
    """Of each row, by operations without rounding."""
    rows = tensor.detach().reshape(tensor.shape[0], -1)
    columns = min(rows.shape[1], _COLUMNS)
    places = torch.arange(columns, device=rows.device) * rows.shape[1] // columns
    bits = rows[:, places].contiguous().view(_INTEGER[rows.element_size()]).to(torch.int64)
    return (bits * torch.tensor(_FACTORS[:columns], device=rows.device)).sum(1)


def _is_plain(tensor: Any) -> bool:
    return (
        type(tensor) in _PLAIN
        and tensor.layout == torch.strided
        and tensor.element_size() in _INTEGER
        and not (tensor.is_complex() or tensor.is_quantized or tensor.is_conj())
        and tensor.grad_fn is None
    )


def _has_run(numbers: torch.Tensor, wanted: list[int]) -> bool:
    """Whether the first of the wanted ones are there one after the other.

    Not all are asked for: of pairs, each side may be chosen by numbers of its own.
    """
    starts = numbers.numel() - _COMPARED + 1
    if starts <= 0 or not numbers.is_contiguous():
        return False
    numbers = numbers.reshape(-1)
    begins = numbers[:starts] == wanted[0]
    for place, number in enumerate(wanted[1:_COMPARED], 1):
        begins = begins & (numbers[place : place + starts] == number)
    return bool(begins.any())


class ChosenRows:
    """One per recording; its calls come from the training's thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begins anew, as for another model."""
        self._is_over = False
        self._first: torch.Tensor | None = None  # fingerprints of the first rows
        self._same: torch.Tensor | None = None  # whether they were the same since
        self._looks = 0
        self._larger: list[_Larger] = []
        self._held: list[Any] | None = None  # what may hold the choice, until the next look
        self._given: list[torch.Tensor] = []  # of each larger tensor, whether others were evaluated
        self._evaluated = 0  # batches
        self._others: torch.Tensor | None = None  # whether these had rows that are not trained on

    def trained(self, tensor: torch.Tensor, step: int, is_kept: bool) -> float | None:
        """The model's first input: how many times as many rows there are, where that is told."""
        if self._is_over:
            return None
        if is_kept or not self._takes(tensor) or capturing_graph(tensor):
            self._end()
            return None
        try:
            with own_operations():
                return self._look(tensor, step)
        except Exception:
            self._end()
            raise

    def evaluated(self, tensor: torch.Tensor) -> None:
        """The model is called without gradients."""
        if self._is_over or not self._larger or self._first is None:
            return
        if not _is_plain(tensor) or tensor.dim() < 2 or capturing_graph(tensor):
            return
        if self._evaluated >= _MOST_EVALUATIONS:
            return
        self._evaluated += 1
        with own_operations():
            given = _prints(tensor[:_MOST_EVALUATED])
            if given.device != self._first.device:
                return
            self._given = [
                was_given | torch.isin(larger.others, given).any()
                for larger, was_given in zip(self._larger, self._given, strict=True)
            ]
            others = (~torch.isin(given, self._first)).any()
            self._others = others if self._others is None else self._others | others

    def _end(self) -> None:
        self.forget()
        self._is_over = True

    @staticmethod
    def _takes(tensor: torch.Tensor) -> bool:
        if not _is_plain(tensor) or tensor.dim() < 2 or tensor.requires_grad:
            return False
        rows = tensor.shape[0]
        values: int = tensor.numel()
        is_batch = _FEWEST_ROWS <= rows <= _MOST_ROWS and values <= _MOST_VALUES // _TIMES
        return bool(is_batch and values >= _FEWEST_VALUES * rows)

    def _look(self, tensor: torch.Tensor, step: int) -> float | None:
        prints = _prints(tensor)
        if self._first is None or self._same is None:
            self._first, self._same = prints, torch.ones((), dtype=torch.bool, device=prints.device)
        elif prints.shape != self._first.shape or prints.device != self._first.device:
            self._end()
            return None
        self._same = self._same & (prints == self._first).all()
        self._looks += 1
        # Another device is waited for at the search only.
        if (prints.device.type == "cpu" or self._looks >= _LOOKS) and not bool(self._same):
            self._end()
            return None
        if self._looks < _LOOKS or step < _STEPS:
            return None
        if not self._larger:
            self._search(tensor, prints)
            if not self._larger:
                self._end()
            return None
        if self._held is not None:
            held, self._held = self._held, None
            while held:
                one = held.pop()
                if sys.getrefcount(one) >= _HELD:  # by another than this variable and the call
                    self._end()
                    return None
        if self._others is None or not bool(self._others):
            return None
        times = [
            larger.times
            for larger, was_given in zip(self._larger, self._given, strict=True)
            if not bool(was_given)
        ]
        return max(times, default=0.0)

    def _search(self, batch: torch.Tensor, prints: torch.Tensor) -> None:
        singles, alike, indices = _things_like(batch)
        held: list[Any] = []
        wanted: list[torch.Tensor] = []  # no lists, which are searched for the same numbers
        for thing in alike:
            numbers = _numbers(thing, batch, prints)
            if numbers is None:
                continue
            if thing.shape[0] < _TIMES * batch.shape[0]:
                held.append(thing)  # a copy of what was chosen, or of a few more
                continue
            if not _may_be_chosen_anew(thing, numbers, singles):
                continue
            if not _are_in_a_row(numbers):  # such numbers are everywhere
                wanted.append(torch.tensor(numbers))
            others = torch.ones(thing.shape[0], dtype=torch.bool)
            others[numbers] = False
            some = others.nonzero()[:, 0]
            some = some[torch.arange(_OTHERS) * len(some) // _OTHERS].to(thing.device)
            larger = _Larger(thing.shape[0] / batch.shape[0], _prints(thing.detach()[some]))
            self._larger.append(larger)
        del alike
        numbers = None
        shape = tuple(batch.shape)
        if any(_is_in_lists(rows.tolist()) for rows in wanted) or (
            self._larger and _is_in_arrays([rows.tolist() for rows in wanted], shape)
        ):
            self._larger = []
        never = torch.zeros((), dtype=torch.bool, device=batch.device)
        self._given = [never] * len(self._larger)
        held += [one for one in indices if any(_has_run(one, rows.tolist()) for rows in wanted)]
        self._held = held


def _things_like(
    batch: torch.Tensor,
) -> tuple[list[torch.Tensor], list[torch.Tensor], list[torch.Tensor]]:
    """Tensors that may be single rows of the batch's kind, many of them, and numbers of rows."""
    singles: list[torch.Tensor] = []
    indices: list[torch.Tensor] = []
    wholes: dict[int, torch.Tensor] = {}
    room = _MOST_NUMBERS
    for thing in _core.instances_of(_PLAIN, exact=True):
        if thing is batch or not _is_plain(thing) or not has_memory(thing):
            continue
        if thing.numel() >= _COMPARED and thing.dtype in (torch.int64, torch.int32):
            room -= thing.numel()
            indices.append(thing)
        if thing.dtype != batch.dtype or thing.device != batch.device:
            continue
        if thing.shape == batch.shape[1:] and type(thing) is torch.Tensor:
            singles.append(thing)
            base = thing._base
            if base is not None and base.shape[1:] == thing.shape and _is_plain(base):
                wholes[id(base)] = base
        elif thing.dim() == batch.dim() and thing.shape[1:] == batch.shape[1:]:
            wholes[id(thing)] = thing
    if room < 0 or len(wholes) > _MOST_TENSORS:
        return [], [], []  # nothing is found, rather than a part
    return singles, list(wholes.values()), indices


def _are_in_a_row(numbers: list[int]) -> bool:
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _may_be_chosen_anew(
    whole: torch.Tensor, numbers: list[int], singles: list[torch.Tensor]
) -> bool:
    """Drawn out of it, or taken off the front of a list of its rows."""
    count = len(numbers)
    if not _are_in_a_row(numbers):
        back = sum(after < before for before, after in itertools.pairwise(numbers))
        is_in_disorder = back >= _DISORDER * count
        return is_in_disorder and 2 * len(singles) < count
    storage = whole.untyped_storage().data_ptr()
    kept = sum(one.untyped_storage().data_ptr() == storage for one in singles)
    return kept >= _TIMES * count and not _are_in_a_list(whole[numbers[0]], count)


def _numbers(whole: torch.Tensor, batch: torch.Tensor, prints: torch.Tensor) -> list[int] | None:
    """Which of its rows the batch's are. None too where it has one of them twice."""
    if whole.shape[0] < batch.shape[0] or whole.numel() > _MOST_VALUES:
        return None
    ordered, order = _prints(whole).sort()
    places = torch.searchsorted(ordered, prints)
    if bool((torch.searchsorted(ordered, prints, right=True) - places != 1).any()):
        return None
    numbers = order[places]
    if not bool((whole.detach()[numbers] == batch).all()):
        return None
    found: list[int] = numbers.tolist()
    return found if 2 * len(set(found)) > len(found) else None


def _are_in_a_list(first: torch.Tensor, count: int) -> bool:
    """Whether a list of so many rows, or a few more, begins with this one: alone or in a tuple."""
    for one in _core.instances_of((list, tuple), exact=True):
        if not count <= len(one) < _TIMES * count:
            continue
        item = one[0]
        if type(item) in (list, tuple) and item:
            item = item[0]
        is_row = type(item) is torch.Tensor and item.shape == first.shape and has_memory(item)
        if is_row and item.data_ptr() == first.data_ptr():
            return True
    return False


def _is_in_lists(numbers: list[int]) -> bool:
    """Or in other containers of Python's numbers, which keep the order that these came in."""
    room = _MOST_NUMBERS
    for one in _core.instances_of((list, tuple, dict, deque), exact=True):
        if one is numbers or len(one) < _COMPARED or type(next(iter(one))) not in _NUMBERS:
            continue
        items = list(one)
        room -= len(items)
        if room < 0:
            return True  # nobody can say
        are_rows = all(type(item) in _NUMBERS and 0 <= item < _MOST_VALUES for item in items)
        if are_rows and _has_run(torch.tensor(items), numbers):
            return True
    return False


def _is_in_arrays(wanted: list[list[int]], shape: tuple[int, ...]) -> bool:
    """Whether an array that variables lead to has such numbers, or may have the chosen rows.

    The garbage collector does not know arrays. What is followed is what it knows of objects.
    """
    known: dict[int, Any] = {}
    near = _variables()
    for _ in range(_DEPTH):
        further: list[Any] = []
        for one in near:
            kind = type(one)
            if id(one) in known or kind in _LEAVES or issubclass(kind, (type, ModuleType)):
                continue
            known[id(one)] = one
            if len(known) > _MOST_FOLLOWED:
                return True  # nobody can say
            if kind is np.ndarray:
                if one.shape[1:] == shape[1:] and shape[0] <= len(one) < _TIMES * shape[0]:
                    return True
                if one.dtype.kind in "iu" and _COMPARED <= one.size <= _MOST_VALUES:
                    flat = torch.from_numpy(one.astype(np.int64).reshape(-1))
                    if any(_has_run(flat, numbers) for numbers in wanted):
                        return True
            elif kind is FunctionType:
                further += one.__closure__ or ()
            elif not (kind is dict and "__builtins__" in one):  # those of a module
                further += gc.get_referents(one)[:_MOST_PARTS]
        near = further
    return False


def _variables() -> list[Any]:
    """Of the functions under way, and of the script."""
    found: list[Any] = []
    frame: FrameType | None = sys._getframe()
    for _ in range(_FRAMES):
        if frame is None:
            break
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] in ("traindbg", "torch"):
            frame = frame.f_back
            continue
        variables = frame.f_locals
        found += variables.values()
        if _is_copy_for_this(frame, variables):
            variables.clear()  # it would keep the function's variables alive
        if module == "__main__":
            found += frame.f_globals.values()
        frame = frame.f_back
    return found


def _is_copy_for_this(frame: FrameType, variables: Any) -> bool:
    """Whether they were copied out of a function for who asked, and nobody else has the copy."""
    is_copy = bool(frame.f_code.co_flags & inspect.CO_OPTIMIZED) and type(variables) is dict
    return is_copy and sys.getrefcount(variables) <= _HELD_BY_FRAME
