"""Finds what is trained by hand, where no optimizer tells which model that is.

While there is no optimizer that tells, each backward pass is asked which leaves it leads to, and
whether those of the pass before have changed since. When they have twice, they are trained by hand:
the module that owns them is watched, or they themselves where none does. What is missed of the
first steps but their losses is told by nobody. Parameters in half precision that have gradients for
many passes and never change are watched, too, where an optimizer has tensors of the same shapes:
they are copies of these, and it never steps because they overflow.

Holds weak references, and the losses of the first steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import brought
from traindbg.hooks.torch.base.leaves import leaves_of
from traindbg.hooks.torch.updates.changes import Changes, Found, elements_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from traindbg.hooks.torch.steps.pass_search import PassListener

_CHANGES = 2  # weights that are loaded or made anew after a trial change once
_LOOKS = 8  # passes of which the graph is gone through; then every so many one
_LOOKS_EVERY = 64
_MOST_PASSES = 10_000  # without a change
_MOST_SEARCHES = 4  # for masters, of all objects
_NEAR = 0.5  # an update changes less of a tensor than this
_COMPARED = 8  # leaves


class ByHandSearch:
    """One per process.

    `found(leaves, losses, root)` is called with what is trained, the losses of the steps before,
    and that of the one under way. `owned()` gives the ids of what optimizers change.
    """

    def __init__(
        self,
        passes: PassListener,
        found: Callable[[list[torch.Tensor], list[torch.Tensor], torch.Tensor | None], None],
        owned: Callable[[], set[int]],
    ) -> None:
        self.is_over = False
        self._searches = 0  # for masters
        self._found = found
        self._owned = owned
        self._begin_anew()
        self._listener = passes
        passes.add(self.pass_begins)

    def _begin_anew(self) -> None:
        self._changes = Changes()
        self._passes = 0
        self._shapes: list[torch.Size] = []
        self._elements: list[torch.Tensor | None] = []  # copies of a few of the leaves'
        self._ids: list[int] = []
        self._losses: list[torch.Tensor] = []  # of steps
        self._loss: torch.Tensor | None = None  # of the step under way

    def end(self) -> None:
        """An optimizer trains what is watched, or nothing is found."""
        if self.is_over:
            return
        self.is_over = True
        self._begin_anew()
        self._listener.remove(self.pass_begins)

    def pass_begins(self, roots: Any, leaves: list[torch.Tensor] | None = None) -> None:
        """Of a process that has no recording, or of what is not known to train. See `Asker`."""
        if self.is_over:
            return
        self._passes += 1
        if self._passes > _MOST_PASSES:
            self.end()
            return
        is_stuck = False
        found = self._changes.found() if self._changes.waits else Found.SAME
        is_due = self._passes <= _LOOKS or self._passes % _LOOKS_EVERY == 0
        if leaves is None and (is_due or found is not Found.SAME):
            leaves = leaves_of(roots)
        if leaves is not None:
            owned = self._owned()
            leaves = [leaf for leaf in leaves if id(leaf) not in owned]
            parameters = [leaf for leaf in leaves if isinstance(leaf, torch.nn.Parameter)]
            leaves = parameters or leaves
            ids = [id(leaf) for leaf in leaves]
            is_stuck = (
                self._passes >= _LOOKS_EVERY  # more than micro-batches of a step
                and any(parameter.dtype is torch.float16 for parameter in parameters)
                and ids == self._ids
                and found is Found.SAME
                and self._have_masters(parameters)
            )
            if ids != self._ids and self._ids:
                # Others: their successors, or what has nothing to do with them.
                found = Found.CHANGED if self._are_successors(leaves) else Found.GONE
            self._ids = ids
            if found is Found.GONE:
                self._begin_anew()
                self._ids = ids
        elif found is not Found.SAME:
            return
        if found is Found.CHANGED:
            self._passes = 1
            self._step_ended()
        if self._loss is None:
            self._loss = _number_of(roots)
        if leaves and (len(self._losses) >= _CHANGES or is_stuck):
            losses, loss = self._losses, self._loss
            self._begin_anew()
            self._found(leaves, losses, loss)
        elif leaves is not None:
            self._changes.remember(leaves)
            self._shapes = [leaf.shape for leaf in leaves]
            self._elements = _elements_of(leaves)

    def _have_masters(self, parameters: Sequence[torch.Tensor]) -> bool:
        """Whether an optimizer has others of their shapes. Goes through all objects."""
        self._searches += 1
        if self._searches > _MOST_SEARCHES:
            return False
        shapes = sorted(tuple(parameter.shape) for parameter in parameters)
        ids = {id(parameter) for parameter in parameters}
        for thing in _core.instances_of(torch.optim.Optimizer):
            groups = vars(thing).get("param_groups", [])
            held = [p for group in groups for p in group["params"] if id(p) not in ids]
            if shapes == sorted(tuple(p.shape) for p in held):
                return True
        return False

    def _step_ended(self) -> None:
        loss, self._loss = self._loss, None
        self._losses.append(torch.tensor(torch.nan) if loss is None else loss)

    def _are_successors(self, leaves: list[torch.Tensor]) -> bool:
        """Whether these are what an update made of those before: near them, yet others all over."""
        if [leaf.shape for leaf in leaves] != self._shapes:
            return False
        both = [*self._elements, *_elements_of(leaves)]
        there = iter(brought([one for one in both if one is not None]))
        values: list[list[float]] = [[] if one is None else next(there).tolist() for one in both]
        middle = len(self._elements)
        for before, now in zip(values[:middle], values[middle:], strict=True):
            size = sum(map(abs, before))
            away = sum(abs(a - b) for a, b in zip(now, before, strict=True))
            others = sum(a != b for a, b in zip(now, before, strict=True))
            if 2 * others > len(before) and away < _NEAR * size:
                return True
        return False


def _elements_of(leaves: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    with own_operations():
        found = [elements_of(leaf) for leaf in leaves[:_COMPARED]]
        return [None if one is None else one.clone() for one in found]


def _number_of(roots: Any) -> torch.Tensor | None:
    """The value of what a backward pass begins with, where that is one number."""
    root = roots[0] if isinstance(roots, (list, tuple)) and roots else roots
    if type(root) is not torch.Tensor or root.numel() != 1 or capturing_graph(root):
        return None
    with own_operations():
        return root.detach().clone()
