"""What a training does before its first optimizer step, where that never comes.

Nothing is told while it goes on: a first step may have many micro-batches. That no step was made is
told when the recording ends, and only where an optimizer was made for the model and the weights
stayed as they were: a loop may change them by hand. The model may be gone by then, so weights are
looked at now and then on the way: the first few elements of each parameter.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_shards import local_part

if TYPE_CHECKING:
    from collections.abc import Iterable

    import torch
    from torch import nn

_LEAST = 20  # backward passes, or losses, without a step: fewer are a trial
_LOOKS_EVERY = 10
_ELEMENTS = 8


class Unstepped:
    """Counts until the first step. One per recording."""

    def __init__(self) -> None:
        self.has_optimizer = False  # one was made for a watched model
        self._losses = 0  # that gradients lead to, in training
        self._passes = 0
        self._before: list[tuple[weakref.ref[nn.Parameter], tuple[float, ...]]] | None = None
        self._changed = False

    def loss_computed(self, models: Iterable[tuple[nn.Module, str]]) -> None:
        """In training, with gradients, before the first step."""
        self._losses += 1
        self._look(self._losses, models)

    def backward_begins(self, models: Iterable[tuple[nn.Module, str]]) -> None:
        """Before the first step."""
        self._passes += 1
        self._look(self._passes, models)

    def found(self) -> tuple[str, int] | None:
        """The fact to tell of a training that ended without a step."""
        if not self.has_optimizer or self._changed or self._before is None:
            return None
        if self._passes >= _LEAST:
            return "passes_without_step", self._passes
        if self._passes == 0 and self._losses >= _LEAST:
            return "losses_without_backward", self._losses
        return None

    def _look(self, count: int, models: Iterable[tuple[nn.Module, str]]) -> None:
        if self._changed or not self.has_optimizer:
            return
        if self._before is None:
            self._before = [
                (weakref.ref(parameter), _first_elements(parameter))
                for model, _ in models
                for parameter in model.parameters()
            ]
        elif count % _LOOKS_EVERY == 0:
            alive = ((known(), first) for known, first in self._before)
            self._changed = any(
                parameter is not None and _first_elements(parameter) != first
                for parameter, first in alive
            )


def _first_elements(parameter: torch.Tensor) -> tuple[float, ...]:
    if capturing_graph(parameter):
        return ()
    with own_operations():
        return tuple(local_part(parameter.detach()).flatten()[:_ELEMENTS].tolist())
