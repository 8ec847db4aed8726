"""What a training does before its first optimizer step, where that never comes.

Nothing is told while it goes on: a first step may have many micro-batches. That no step was made is
told when the recording ends, and only where an optimizer was made for the model and the weights
stayed as they were: a loop may change them by hand. The model may be gone by then, so weights are
looked at now and then on the way: the first few elements of each parameter.
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING

from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.base.later import brought, may_read
from traindbg.hooks.torch.base.parameters import number_of
from traindbg.hooks.torch.updates.changes import Elements, elements_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch
    from torch import nn

_LEAST = 20  # backward passes, or losses, without a step: fewer are a trial
_LOOKS_EVERY = 10


class Unstepped:
    """Counts until the first step. One per recording."""

    def __init__(self) -> None:
        self.has_optimizer = False  # one was made for a watched model
        self._losses = 0  # that gradients lead to, in training
        self._passes = 0
        self._before: list[weakref.ref[nn.Parameter]] | None = None
        self._elements: Elements | None = None  # of those, at the first look
        self._changed = False
        self._perhaps: list[torch.Tensor] = []  # the same, still on devices
        self._has_gradients = False  # passes of other models leave none

    def loss_computed(self, models: Iterable[tuple[nn.Module, str]]) -> None:
        """In training, with gradients, before the first step."""
        self._losses += 1
        self._look(self._losses, models)

    def backward_begins(self, models: Iterable[tuple[nn.Module, str]]) -> None:
        """Before the first step."""
        self._passes += 1
        self._look(self._passes, models)

    def backward_ended(self) -> None:
        """Before the first step."""
        if not self._has_gradients and self._passes <= _LEAST:
            known = (parameter() for parameter in self._before or ())
            self._has_gradients = any(p is not None and p.grad is not None for p in known)

    def found(self) -> tuple[str, int] | None:
        """The fact to tell of a training that ended without a step."""
        self._settle(self._perhaps)
        if not self.has_optimizer or self._changed or self._before is None:
            return None
        if self._passes >= _LEAST and self._has_gradients:
            return "passes_without_step", self._passes
        if self._passes == 0 and self._losses >= _LEAST:
            return "losses_without_backward", self._losses
        return None

    def _look(self, count: int, models: Iterable[tuple[nn.Module, str]]) -> None:
        if self._changed or not self.has_optimizer:
            return
        if self._before is None:
            parameters = [
                parameter
                for model, _ in models
                for parameter in model.parameters()
                if number_of(parameter) > 0 and not parameter.is_meta
            ]
            self._before = list(map(weakref.ref, parameters))
            self._elements = _first_elements(parameters)
        elif count % _LOOKS_EVERY == 0:
            now = [known() for known in self._before]
            alive = [parameter for parameter in now if parameter is not None]
            if len(alive) < len(now) or self._elements is None:
                self._changed = True  # one that is gone was replaced by hand
                return
            differ = self._elements.differ(_first_elements(alive))
            if all(map(may_read, differ)):
                self._settle(differ)
            else:  # it is asked for at the end only: a look must not wait
                with own_operations():
                    self._perhaps = [
                        one if before is None else before | one
                        for before, one in itertools.zip_longest(self._perhaps, differ)
                    ]

    def _settle(self, differ: list[torch.Tensor]) -> None:
        with own_operations():
            self._changed = self._changed or any(map(bool, brought(differ)))


def _first_elements(parameters: Iterable[torch.Tensor]) -> Elements:
    return Elements([elements_of(parameter, first=True) for parameter in parameters])
