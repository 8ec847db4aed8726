"""Hears backward passes while nothing is recorded, for those who find out what they train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.steps import patches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # Is told of a backward pass that begins, outside of others: its roots, and the leaves of which
    # gradients are computed; None: of all that the roots lead to. Where leaves are given, there may
    # be no roots.
    Asker = Callable[[Any, list[torch.Tensor] | None], None]

_graph_task = getattr(torch._C, "_current_graph_task_id", None)


def _nothing(*_: Any, **__: Any) -> None:
    pass


class PassListener:
    """One per process. While there is no recording, it is what `steps.patches` tells."""

    def __init__(self) -> None:
        self.is_evaluating = False
        self._askers: list[Asker] = []
        self._stop_listening: Callable[[], None] | None = None

    def add(self, asker: Asker) -> None:
        """Who is told from now on, after those before."""
        if asker not in self._askers:
            self._askers.append(asker)
        if self._stop_listening is None:
            self._stop_listening = patches.listen_to_grad()
        if patches.state.listener is None:
            listener: Any = self
            patches.state.listen(listener, None, None)

    def remove(self, asker: Asker) -> None:
        """Who is not any more."""
        if asker in self._askers:
            self._askers.remove(asker)
        if self._askers or self._stop_listening is None:
            return
        self._stop_listening()
        self._stop_listening = None
        listener: Any = patches.state.listener
        if listener is self:
            patches.state.listen(None, None, None)

    def __getattr__(self, name: str) -> Any:
        """All else that a listener hears is nothing to it."""
        if name.startswith("_"):
            raise AttributeError(name)
        return _nothing

    def backward_begins(self, tensors: Any, retains: bool) -> None:
        """Of a process that has no recording. One may begin, which hears of the pass, too."""
        self._tell(tensors, None)
        listener = self._begun(tensors)
        if listener is not None:
            listener.backward_begins(tensors, retains)

    def grad_begins(
        self, outputs: Any, inputs: Sequence[Any], retains: bool, goes_on: bool
    ) -> None:
        """The same by `torch.autograd.grad`."""
        leaves = [x for x in inputs if isinstance(x, torch.Tensor) and x.is_leaf]
        if leaves:
            self._tell(None if goes_on else outputs, leaves)
        listener = self._begun(outputs)
        if listener is not None:
            listener.grad_begins(outputs, inputs, retains, goes_on)

    def _begun(self, roots: Any) -> Any:
        """The recording that has begun, where it hears this thread."""
        listener: Any = patches.state.listener
        if listener is self or listener is None:
            return None
        threads = patches.state.threads
        return listener if threads is None or threads.hears_backward(roots) else None

    def _tell(self, roots: Any, leaves: list[torch.Tensor] | None) -> None:
        if _graph_task is None or _graph_task() == -1:
            for asker in list(self._askers):
                guarded("search", asker, roots, leaves)
