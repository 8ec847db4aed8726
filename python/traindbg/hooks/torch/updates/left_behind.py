"""An optimizer whose model is gone, and that steps on while another model is trained in its place.

    self.model = copy.deepcopy(self.best)  # the optimizer has the parameters of the one before

Its parameters live on in the optimizer, without a gradient; the loss leads to those of the new
model, which no optimizer has. Asked for from the moment on at which the last watched model is gone:
at so many steps in a row a backward pass gave no gradient to what the optimizer has, but did to
parameters that stay as they are. After that nothing is looked at any more.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from traindbg.hooks.torch.base.device import version_of
from traindbg.hooks.torch.updates.untrained import first_elements

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS = 10  # in a row
_MOST_NODES = 30_000
_MOST_LEAVES = 16  # that are followed
_LEAF = "AccumulateGrad"

_State = tuple[int, int]  # a gradient: its id and version


def _parameters_in(root: torch.Tensor) -> list[nn.Parameter]:
    """The leaves of a graph that are parameters; none where it is too large."""
    nodes: list[Any] = [root.grad_fn]
    seen: set[Any] = set()
    found: list[nn.Parameter] = []
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if len(seen) > _MOST_NODES:
            return []
        if _LEAF in node.name():
            leaf = getattr(node, "variable", None)
            if isinstance(leaf, nn.Parameter):
                found.append(leaf)
        nodes += [edge[0] for edge in node.next_functions]
    return found


class LeftBehind:
    """One per recording."""

    def __init__(self) -> None:
        self._optimizer: weakref.ref[torch.optim.Optimizer] | None = None
        self.end()

    def end(self) -> None:
        """It is known, or cannot be."""
        self._optimizer = None
        self._steps = 0
        self._before: dict[int, _State] | None = None  # its gradients, when the pass began
        self._leaves: list[weakref.ref[nn.Parameter]] = []  # of the pass, that are none of its own
        self._first: dict[int, tuple[float, ...]] = {}  # first elements of these, by id

    @property
    def is_on(self) -> bool:
        """Whether passes and steps are to be told."""
        return self._optimizer is not None and self._optimizer() is not None

    def begin(self, optimizer: torch.optim.Optimizer) -> None:
        """The last model is gone; `optimizer` drove the steps."""
        self.end()
        self._optimizer = weakref.ref(optimizer)

    def _held(self) -> list[torch.Tensor]:
        optimizer = None if self._optimizer is None else self._optimizer()
        groups = [] if optimizer is None else optimizer.param_groups
        return [parameter for group in groups for parameter in group["params"]]

    def _gradients(self) -> dict[int, _State]:
        held = ((p, p.grad) for p in self._held())
        return {id(p): (id(g), version_of(g)) for p, g in held if g is not None}

    def backward_begins(self, root: Any) -> None:
        """Of `root`."""
        if type(root) is not torch.Tensor or root.grad_fn is None:
            return
        self._before = self._gradients()
        own = {id(parameter) for parameter in self._held()}
        leaves = _parameters_in(root)
        if any(id(leaf) in own for leaf in leaves):
            self.end()
            return
        self._leaves = [weakref.ref(leaf) for leaf in leaves]

    def will_step(
        self, optimizer: torch.optim.Optimizer, in_any_optimizer: Callable[[], set[int]]
    ) -> int:
        """How many parameters are trained in vain, once that is certain; else 0."""
        if self._optimizer is None or self._optimizer() is not optimizer or self._before is None:
            return 0
        before, self._before = self._before, None
        is_reached = any(before.get(key) != state for key, state in self._gradients().items())
        leaves = [leaf for known in self._leaves if (leaf := known()) is not None]
        trained = [leaf for leaf in leaves if leaf.grad is not None]
        if is_reached or not trained:
            self.end()
            return 0
        for leaf in trained[:_MOST_LEAVES]:
            first = first_elements(leaf)
            if self._first.setdefault(id(leaf), first) != first:
                self.end()  # they are changed by hand, or by an optimizer of another kind
                return 0
        self._steps += 1
        if self._steps < _STEPS:
            return 0
        elsewhere = in_any_optimizer()
        self.end()
        return 0 if any(id(leaf) in elsewhere for leaf in trained) else len(trained)
