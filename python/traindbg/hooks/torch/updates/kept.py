"""Whether gradients are cleared between the steps of each of several optimizers, and not too soon.

The loss of one optimizer may leave gradients in the parameters of another, which clears them before
its own pass: they are no fault. So each optimizer is followed from one of its steps to its next:
its smallest gradient is the same tensor as then, was not zero when any backward pass began, and a
pass has added to it: gradients that the loop computes and writes there itself are not summed.

What is kept are weak references. No device is waited for: of gradients there nothing is told.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations, version_of
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.shards import local_part

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from traindbg.hooks.torch.base.parameters import Parameters

    _Reference: TypeAlias = weakref.ref[torch.Tensor]


def _parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def _is_any(gradient: torch.Tensor | None) -> bool:
    """Whether there is a gradient, which is not 0 as far as it can be read without waiting."""
    if gradient is None or not may_read(gradient) or capturing_graph(gradient):
        return gradient is not None
    if gradient.layout is not torch.strided:
        return True
    with own_operations():
        return bool(local_part(gradient).any())


class _Since(NamedTuple):
    """The last step of an optimizer."""

    gradient: weakref.ref[torch.Tensor]  # as the step used it


class KeptGradients:
    """One per recording, one thread."""

    def __init__(self) -> None:
        self._since: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Since] = (
            weakref.WeakKeyDictionary()
        )
        # Of these: passes that began since then, and whether the gradient was cleared at one.
        self._passes: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = (
            weakref.WeakKeyDictionary()
        )
        self._cleared: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        # And at which version it was when the pass under way began, until one has changed it.
        self._versions: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = (
            weakref.WeakKeyDictionary()
        )
        self._added: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._stepped: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()  # after a pass
        # Of these: a pass left gradients, in this parameter for one, and no step of theirs used
        # them up to now; and of these, they were there when the first one stepped after the pass.
        self._left: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Reference] = (
            weakref.WeakKeyDictionary()
        )
        self._waited: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._is_looked_at = False  # after the pass
        self._is_clear = True

    def clear(self) -> None:
        """A step begins in which nothing is looked at."""
        if not self._is_clear:  # at nearly every step it is
            self.__init__()  # type: ignore[misc]

    def pass_begins(self, tables: Mapping[torch.optim.Optimizer, Parameters]) -> None:
        """A backward pass begins."""
        self._is_clear = False
        self._stepped.clear()
        self._waited.clear()
        self._is_looked_at = False
        if len(tables) < 2:
            return
        for optimizer, since in list(self._since.items()):
            table = tables.get(optimizer)
            smallest = None if table is None else table.smallest
            if smallest is None:
                self._since.pop(optimizer, None)
                continue
            gradient = smallest.grad
            is_other = since.gradient() is not gradient
            if gradient is None or is_other:
                self._cleared.add(optimizer)
            elif not may_read(gradient) or capturing_graph(gradient):
                self._since.pop(optimizer, None)  # it may hold zeros; a look would wait
                continue
            else:
                with own_operations():
                    if not bool(local_part(gradient).any()):
                        self._cleared.add(optimizer)
                self._versions[optimizer] = version_of(gradient)
            self._passes[optimizer] = self._passes.get(optimizer, 0) + 1

    def pass_ended(self, tables: Mapping[torch.optim.Optimizer, Parameters]) -> None:
        """A backward pass has ended."""
        for optimizer, version in list(self._versions.items()):
            since = self._since.get(optimizer)
            gradient = None if since is None else since.gradient()
            if gradient is not None and version_of(gradient) != version:
                self._added.add(optimizer)
        self._versions.clear()
        if len(tables) < 2:
            return
        for optimizer in list(tables):
            reached = next((p for p in _parameters_of(optimizer) if p.grad is not None), None)
            if reached is not None:
                self._left[optimizer] = weakref.ref(reached)

    def is_too_soon(
        self,
        optimizer: torch.optim.Optimizer,
    ) -> bool | None:
        """Whether the gradients of this step were there when another one stepped, and are no more.

        Or are 0 all of them, where a host can read them. None: none were left, or they were gone
        before any stepped: frozen so, or of a pass of another kind; or it is none of PyTorch's, and
        may compute its own. Called once, before its step.
        """
        if not self._is_looked_at:
            self._is_looked_at = True
            for other, reference in list(self._left.items()):
                reached = reference()
                if other is not optimizer and reached is not None and _is_any(reached.grad):
                    self._waited.add(other)
        if optimizer not in self._left or not type(optimizer).__module__.startswith("torch.optim."):
            return None
        has_waited = optimizer in self._waited
        del self._left[optimizer]
        self._waited.discard(optimizer)
        if any(_is_any(parameter.grad) for parameter in _parameters_of(optimizer)):
            return False
        return True if has_waited else None

    def will_step(self, optimizer: torch.optim.Optimizer, table: Parameters) -> bool | None:
        """Whether what its last step used is still there; None: that is not known."""
        self._is_clear = False
        since = self._since.pop(optimizer, None)
        passes, is_cleared = self._passes.pop(optimizer, 0), optimizer in self._cleared
        is_added = optimizer in self._added
        self._cleared.discard(optimizer)
        self._added.discard(optimizer)
        smallest = table.smallest
        gradient = None if smallest is None else smallest.grad
        if gradient is not None:
            self._since[optimizer] = _Since(weakref.ref(gradient))
        if since is None or passes == 0:
            return None
        is_same = gradient is not None and since.gradient() is gradient
        return is_same and is_added and not is_cleared

    def shares_pass(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether another one stepped after the same backward pass. Called before its step."""
        self._is_clear = False
        others = any(other is not optimizer for other in self._stepped)
        self._stepped.add(optimizer)
        return others
