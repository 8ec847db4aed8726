"""States: what a model or a recurrent cell returned and is given again, as the next step's memory.

    logits, state = model(x, state.detach())     # between chunks of a text: no input of the data

    for step in range(length):
        h, c = self.cell(x[:, step], (h.detach(), c.detach()))  # no gradient reaches what it kept

What `detach()` returns has the memory of what it was called on, by which a state is known again: a
copy is not. Kept are weak references to storages, which hold their addresses and no memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from traindbg.hooks.torch.base.names import tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MOST_LOOKS = 4  # steps
_MOST_RETURNED = 32  # tensors
_FEWEST_CUTS = 8  # in one pass: a result that is refined is cut on purpose, a few times
_DEPTH = 3  # of tuples, lists and mappings


def _functions(*names: str) -> frozenset[Any]:
    return frozenset(getattr(torch, name) for name in names if hasattr(torch, name))


_STEPS = _functions("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
_SEQUENCES = _functions("lstm", "gru", "rnn_tanh", "rnn_relu")
CELLS: frozenset[Any] = _STEPS | _SEQUENCES
_ARGUMENTS_OF_SEQUENCES = 9  # the last one says whether the batch comes first


def _is_plain(tensor: torch.Tensor) -> bool:
    return type(tensor) is torch.Tensor and tensor.layout is torch.strided


def _storage_of(tensor: torch.Tensor) -> Any:
    """None: it has none, as inside of transforms, or is of a class that may hold anything."""
    if not _is_plain(tensor):
        return None
    try:
        return tensor.untyped_storage()
    except (RuntimeError, NotImplementedError):
        return None


class _Computed:
    """The storages of results that have a graph."""

    def __init__(self, results: Iterable[torch.Tensor]) -> None:
        storages = [_storage_of(x) for x in results if x.requires_grad]
        # A weak reference keeps the address: no other storage is taken for it.
        self._known = {each._cdata: StorageWeakRef(each) for each in storages if each is not None}

    def has(self, tensor: torch.Tensor) -> bool:
        storage = _storage_of(tensor) if self._known else None
        return storage is not None and storage._cdata in self._known


class OwnResults:
    """What a model returned last, at a step that was looked at. One per recording."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self._last = _Computed(())

    def returned(self, output: Any) -> None:
        found = [tensor for _, tensor in tensors_in(output, _DEPTH)]
        self._last = _Computed(found[:_MOST_RETURNED])

    def has(self, tensor: torch.Tensor) -> bool:
        """Whether an input of the model is one of its results, or a part of one."""
        return self._last.has(tensor)


class _Cell:
    """What was seen of a place in one forward pass."""

    def __init__(self) -> None:
        self.last = _Computed(())
        self.cuts = 0  # states that are its result before, without its graph
        self.links = 0  # states with a graph


class Cells:
    """What recurrent cells are given in the forward passes of one step. One per recording."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self.is_open = False
        self._looks = 0
        self._cells: dict[str, _Cell] = {}

    def begin(self, is_due: bool) -> None:
        """A forward pass of the training begins; of a step it may be one of several."""
        self.is_open = is_due and self._looks < _MOST_LOOKS
        for cell in self._cells.values():
            cell.last = _Computed(())
        if not is_due:
            self._cells.clear()

    def called(self, place: str, function: Any, args: Any, result: Any) -> None:
        """One of CELLS was called and has returned."""
        if not self.is_open or not torch.is_grad_enabled() or len(args) < 2:
            return
        if function in _SEQUENCES and not _is_of_one_step(args):
            return
        cell = self._cells.setdefault(place, _Cell())
        states = [tensor for _, tensor in tensors_in(args[1], 1)]
        if any(state.requires_grad for state in states):
            cell.links += 1
        elif any(map(cell.last.has, states)):
            cell.cuts += 1
        cell.last = _Computed(tensor for _, tensor in tensors_in(result, 1))

    def facts(self) -> Iterator[tuple[str, float, str]]:
        """Of a step that ends: the cell that no state reaches with its graph, and how often."""
        self.is_open = False
        cells, self._cells = self._cells, {}
        if not cells:
            return
        self._looks += 1
        cut = {
            place: cell.cuts
            for place, cell in cells.items()
            if cell.links == 0 and cell.cuts >= _FEWEST_CUTS
        }
        place = next(iter(cut), "")
        yield "states_cut", float(cut.get(place, 0)), place


def _is_of_one_step(args: Any) -> bool:
    """A sequence that goes through as a whole may be a part of one that is cut on purpose."""
    sequence = args[0]
    if len(args) < _ARGUMENTS_OF_SEQUENCES or not isinstance(sequence, torch.Tensor):
        return False
    is_packed = isinstance(args[3], (list, tuple))
    return not is_packed and sequence.dim() == 3 and sequence.shape[1 if args[8] else 0] == 1
