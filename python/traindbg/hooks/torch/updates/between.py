"""Whether weights were written to between the last step of an optimizer and its successor's first.

A meta-update or an average over clients does that, and makes the optimizer anew on purpose; where
one is made anew by mistake, the weights are as they were left. They are looked at once an optimizer
was made anew, until the next one is or the training gets long: a few elements of a few parameters,
which are copied where they live.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.parameters import has_memory, number_of
from traindbg.hooks.torch.base.shards import local_part

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST = 4  # parameters, the smallest ones
_ELEMENTS = 64  # of each
_MOST_STEPS = 5000


def _elements(parameter: torch.Tensor) -> torch.Tensor:
    values = local_part(parameter.detach())
    is_plain = values.layout is torch.strided and values.is_contiguous()
    if not is_plain or not has_memory(values):
        return torch.empty(0)
    return values.view(-1)[:_ELEMENTS].clone()


class WeightsBetween:
    """What weights were like after the last two steps. One per recording; holds weak references."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Nothing is looked at."""
        self._parameters: list[weakref.ref[torch.Tensor]] = []
        self._last: list[torch.Tensor] = []
        self._before: list[torch.Tensor] = []
        self._steps_left = 0

    @property
    def is_on(self) -> bool:
        """Whether ends of steps are looked at."""
        return bool(self._parameters)

    def begin(self, parameters: Iterable[torch.Tensor], steps: int) -> None:
        """Looks at an optimizer's parameters from its next step on; the one before made `steps`."""
        self.forget()
        seen = [p for p in parameters if number_of(p) > 0 and not p.is_meta and p.requires_grad]
        smallest = sorted(seen, key=lambda parameter: parameter.numel())[:_MOST]
        self._parameters = [weakref.ref(parameter) for parameter in smallest]
        self._steps_left = min(2 * steps + 10, _MOST_STEPS)

    def stepped(self) -> None:
        """The optimizer made a step."""
        now = self._look()
        self._steps_left -= 1
        if now is None or self._steps_left < 0:
            self.forget()
            return
        self._before, self._last = self._last, now

    def end(self) -> bool:
        """Another one is about to step: whether all that the last step moved was written to since.

        Waits for a device.
        """
        before, last, now = self._before, self._last, self._look()
        self.forget()
        if not before or now is None:
            return False
        with own_operations():
            moved = [
                not torch.equal(values, current)
                for earlier, values, current in zip(before, last, now, strict=True)
                if not torch.equal(earlier, values)
            ]
        return bool(moved) and all(moved)

    def _look(self) -> list[torch.Tensor] | None:
        parameters = [known() for known in self._parameters]
        alive = [parameter for parameter in parameters if parameter is not None]
        if len(alive) < len(parameters) or any(map(capturing_graph, alive[:1])):
            return None
        with own_operations():
            return [_elements(parameter) for parameter in alive]
