"""What a training does before its first optimizer step, where that never comes.

Nothing is told while it goes on: a first step may have many micro-batches. That no step was made is
told when the recording ends, and only where an optimizer was made for the model and the weights
stayed as they were: a loop may change them by hand. The model may be gone by then, so weights are
looked at now and then on the way: the first few elements of each parameter.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import torch

from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_parameters import number_of
from traindbg.hooks.torch_shards import local_part

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        self._before: list[tuple[weakref.ref[nn.Parameter], str]] | None = None
        self._changed = False
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
            known = (parameter() for parameter, _ in self._before or ())
            self._has_gradients = any(p is not None and p.grad is not None for p in known)

    def found(self) -> tuple[str, int] | None:
        """The fact to tell of a training that ended without a step."""
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
            self._before = []
            for model, _ in models:
                for parameter in model.parameters():
                    if number_of(parameter) > 0 and not parameter.is_meta:
                        self._before.append((weakref.ref(parameter), _first_elements(parameter)))
        elif count % _LOOKS_EVERY == 0:
            for known, first in self._before:
                parameter = known()
                # One that is gone was replaced by hand.
                if parameter is None or _first_elements(parameter) != first:
                    self._changed = True
                    return


def _first_elements(parameter: torch.Tensor) -> str:
    """As words: what is not a number is like itself."""
    local = local_part(parameter.detach())
    if capturing_graph(parameter) or local.layout is not torch.strided or local.numel() == 0:
        return ""
    with own_operations():
        for _ in range(local.dim() - 1):  # without a copy of it all
            local = local[0]
        return str(local.reshape(-1)[:_ELEMENTS].tolist())
