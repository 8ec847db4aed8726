"""Finds what optimizers train where no module holds it.

A backward pass that leads to tensors of an optimizer whose model was not found tells that they are
trained by it. They are watched from this pass on, as if they were a module's parameters. Copies
that an optimizer trains in the place of what the graph ends in, as of weights in half precision,
are not found so, nor are multipliers, which are one number.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.base.leaves import leaves_of, optimized_by

if TYPE_CHECKING:
    from collections.abc import Callable

    import torch

    from traindbg.hooks.torch.steps.pass_search import PassListener

_FEWEST = 2  # numbers
_LOOKS = 8  # passes of which the graph is gone through; then every so many one
_LOOKS_EVERY = 64
_MOST_PASSES = 10_000
_MOST_OPTIMIZERS = 64  # the latest ones


class OptimizedSearch:
    """One per process. Holds weak references.

    `found(optimizers)` is called with those of a thread whose models were not found, when a pass in
    it leads to what one of them trains; those that it leads to are in front.
    """

    def __init__(
        self, passes: PassListener, found: Callable[[list[torch.optim.Optimizer]], None]
    ) -> None:
        self._listener = passes
        self._found = found
        # In the order of `add`, with the thread that did.
        self._optimizers: list[tuple[weakref.ref[torch.optim.Optimizer], int]] = []
        self._passes = 0

    def add(self, optimizer: torch.optim.Optimizer) -> None:
        """Its model was not found, and nothing is recorded."""
        if self._passes <= _MOST_PASSES and _numbers_of(optimizer) >= _FEWEST:
            alive = [each for each in self._optimizers if each[0]() is not None]
            if all(known() is not optimizer for known, _ in alive):
                alive.append((weakref.ref(optimizer), threading.get_ident()))
            self._optimizers = alive[-_MOST_OPTIMIZERS:]
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
            ends = leaves_of(roots, with_complex=True) if leaves is None else leaves
            reached = {id(leaf) for leaf in ends}
            here = threading.get_ident()
            alive = [known() for known, thread in self._optimizers if thread == here]
            optimizers = [optimizer for optimizer in alive if optimizer is not None]
            optimizers.sort(key=lambda each: _numbers_of(each, reached) < _FEWEST)
            if optimizers and _numbers_of(optimizers[0], reached) >= _FEWEST:
                self._found(optimizers)


def _numbers_of(optimizer: torch.optim.Optimizer, among: set[int] | None = None) -> int:
    return sum(p.numel() for p in optimized_by(optimizer) if among is None or id(p) in among)
