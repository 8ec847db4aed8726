"""Of a model that is never called: the part whose inputs are taken for the model's.

    loss = model.loss(batch)            # calls model.time(t), model.body(x), model.head(h)

It is a part with parameters that is called once in each step, with tensors that no gradient goes
through and that are other ones each time; of several the one with the largest tensor: what time
step, style or noise comes beside the data is smaller, as a rule. What is called several times (a
discriminator, a cell, one encoder for two views), or with what never changes (positions, prompts, a
grid), is none. Only where no part is given anything that changes, and what one is given is made
anew each time, is it taken: a feed that stands still gives such batches. Three steps are looked at.
A few values of each are kept until then; of what lies on a device, which is not waited for, a weak
reference.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.names import tensors_in
from traindbg.hooks.torch.base.transforms import is_transforming

_LOOKS = 3  # steps
_VALUES = 64
_MOST_PARTS = 64


class _Given(NamedTuple):
    """What a part was given."""

    tensor: weakref.ref[torch.Tensor]  # the largest one
    size: int
    values: tuple[float, ...]  # some of it; of a device none
    is_table: bool  # of floating point, with columns

    def is_again(self, before: _Given) -> bool:
        """Whether what was given before came once more."""
        if self.values or before.values:
            return self.values == before.values
        return self.is_kept_since(before)

    def is_kept_since(self, before: _Given) -> bool:
        """Whether it is the very tensor that was given before."""
        tensor = before.tensor()  # that is still there: an id or an address may be another one's
        return tensor is not None and tensor is self.tensor()


class StandIn:
    """One per model, one thread."""

    def __init__(self) -> None:
        self.name = ""  # empty until it is chosen, or where there is none
        self._looks = 0
        self._step: dict[str, _Given] = {}  # parts that were called in the step under way
        self._last: dict[str, _Given] = {}  # those that were in all steps, at the last one
        self._not: set[str] = set()
        # What any part was given without a gradient, by its name and the number of the call.
        self._data: dict[tuple[str, int], _Given] = {}
        self._last_data: dict[tuple[str, int], _Given] = {}
        self._stands_still = True  # all of it is the same in each step, as far as it was looked at

    @property
    def is_known(self) -> bool:
        """Whether there is one, or none."""
        return self._looks >= _LOOKS

    @property
    def has_looked(self) -> bool:
        """Whether parts were called in a step that is over."""
        return self._looks > 0

    def called(self, name: str, module: torch.nn.Module, given: Any) -> None:
        """A part is, by the training, and has returned."""
        if torch.jit.is_tracing() or is_transforming():
            return
        tensors = [tensor for _, tensor in tensors_in(given)]
        if self._stands_still:
            self._note_data(name, tensors)
        if name in self._not or len(self._step) >= _MOST_PARTS:
            return
        if (
            name in self._step
            or not tensors
            or any(tensor.requires_grad or not _is_plain(tensor) for tensor in tensors)
            or next(module.parameters(), None) is None
        ):
            self._not.add(name)
            return
        self._step[name] = _given(tensors)

    def _note_data(self, name: str, tensors: list[torch.Tensor]) -> None:
        """Of a part with or without parameters, however often it is called."""
        data = [tensor for tensor in tensors if not tensor.requires_grad]
        if not data:
            return
        call = sum(known == name for known, _ in self._data)
        if len(self._data) >= _MOST_PARTS or not all(map(_is_plain, data)):
            self._stands_still = False
            return
        self._data[name, call] = _given(data)

    def _end_data(self) -> None:
        data, last, self._data = self._data, self._last_data, {}
        if self._looks > 0 and self._stands_still:
            self._stands_still = data.keys() == last.keys() and all(
                given.is_again(last[key]) for key, given in data.items()
            )
        self._last_data = data

    def _is_standing_batch(self, name: str, given: _Given) -> bool:
        """Whether the same table is made for a part again and again, and nothing else changes."""
        if not self._stands_still or not given.is_table:
            return False
        last = self._last.get(name)
        return self._looks == 0 or (last is not None and not given.is_kept_since(last))

    def step_ended(self) -> None:
        """The step is over; of the third one, the choice is made."""
        step, self._step = self._step, {}
        if self.is_known or not (step or self._not):
            return
        self._end_data()
        kept = {
            name: given
            for name, given in step.items()
            if name not in self._not
            and (
                self._looks == 0
                or (name in self._last and not given.is_again(self._last[name]))
                or self._is_standing_batch(name, given)
            )
        }
        self._last = kept
        self._looks += 1
        if self.is_known and kept:
            self.name = max(kept, key=lambda name: kept[name].size)
        if self.is_known:
            self._last, self._not = {}, set()
            self._data, self._last_data = {}, {}


def _given(tensors: list[torch.Tensor]) -> _Given:
    largest = max(tensors, key=lambda tensor: tensor.numel())
    is_table = largest.is_floating_point() and largest.dim() >= 2
    return _Given(weakref.ref(largest), largest.numel(), _some_of(largest), is_table)


def _is_plain(tensor: torch.Tensor) -> bool:
    return (
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and not (tensor.is_nested or tensor.is_meta or tensor.is_quantized)
        and not capturing_graph(tensor)
    )


def _some_of(tensor: torch.Tensor) -> tuple[float, ...]:
    if tensor.is_complex() or not may_read(tensor):
        return ()
    with own_operations():
        flat = tensor.detach().reshape(-1)
        return tuple(flat[:: max(1, len(flat) // _VALUES)].tolist())
