"""Whether gradients are cleared between the steps of each of several optimizers.

The loss of one optimizer may leave gradients in the parameters of another, which clears them before
its own pass: they are no fault. So each optimizer is followed from one of its steps to its next:
if its smallest gradient was gone or zero when some backward pass began, it was cleared.

What is kept are weak references.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from traindbg.hooks.torch_device import capturing_graph, own_operations

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from traindbg.hooks.torch_parameters import Parameters


def _is_cleared(gradient: torch.Tensor | None) -> bool:
    """On a device a look would wait: there every gradient counts as cleared."""
    if gradient is None or not gradient.is_cpu or capturing_graph(gradient):
        return True
    with own_operations():
        return not bool(gradient.any())


class KeptGradients:
    """One per recording, one thread."""

    def __init__(self) -> None:
        self._open: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()  # made a step
        self._cleared: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()  # and since then

    def clear(self) -> None:
        """A step begins in which nothing is looked at."""
        self._open.clear()
        self._cleared.clear()

    def pass_begins(self, tables: Mapping[torch.optim.Optimizer, Parameters]) -> None:
        """A backward pass begins."""
        if len(tables) < 2:
            return
        for optimizer, table in tables.items():
            if optimizer in self._cleared or table.smallest is None:
                continue
            if _is_cleared(table.smallest.grad):
                self._cleared.add(optimizer)

    def will_step(self, optimizer: torch.optim.Optimizer) -> bool | None:
        """Whether what its last step used is still there; None: that step was not looked at."""
        was_open, is_cleared = optimizer in self._open, optimizer in self._cleared
        self._open.add(optimizer)
        self._cleared.discard(optimizer)
        return not is_cleared if was_open else None
