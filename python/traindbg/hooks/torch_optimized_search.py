"""Finds what optimizers train where no module holds it.

A backward pass that leads to tensors of an optimizer whose model was not found tells that they are
trained by it. They are watched from this pass on, as if they were a module's parameters. Copies
that an optimizer trains in the place of what the graph ends in, as of weights in half precision,
are not found so, nor are multipliers, which are one number.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch_leaves import leaves_of, optimized_by

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from traindbg.hooks.torch_pass_search import PassListener

_FEWEST = 2  # numbers
_LOOKS = 8  # passes of which the graph is gone through; then every so many one
_LOOKS_EVERY = 64
_MOST_PASSES = 10_000


class OptimizedSearch:
    """One per process. Holds weak references.

    `found(optimizers)` is called with all whose models were not found, when a pass leads to what
    one of them trains.
    """

    def __init__(
        self, passes: PassListener, found: Callable[[list[torch.optim.Optimizer]], None]
    ) -> None:
        self._listener = passes
        self._found = found
        self._optimizers: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._passes = 0

    def add(self, optimizer: torch.optim.Optimizer) -> None:
        """Its model was not found, and nothing is recorded."""
        if self._passes <= _MOST_PASSES and _numbers_of(optimizer) >= _FEWEST:
            self._optimizers.add(optimizer)
            self._listener.add(self.pass_begins)

    def end(self) -> None:
        """Something is recorded."""
        self._optimizers.clear()
        self._listener.remove(self.pass_begins)

    def pass_begins(self, roots: Any, leaves: list[torch.Tensor] | None = None) -> None:
        """See `Asker`."""
        self._passes += 1
        if self._passes > _MOST_PASSES:
            self.end()
        elif self._passes <= _LOOKS or self._passes % _LOOKS_EVERY == 0:
            reached = {id(leaf) for leaf in (leaves_of(roots) if leaves is None else leaves)}
            optimizers = list(self._optimizers)
            if any(_numbers_of(optimizer, reached) >= _FEWEST for optimizer in optimizers):
                self._found(optimizers)


def _numbers_of(optimizer: torch.optim.Optimizer, among: set[int] | None = None) -> int:
    return sum(p.numel() for p in optimized_by(optimizer) if among is None or id(p) in among)
