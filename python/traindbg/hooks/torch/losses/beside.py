"""Losses that are computed with gradients, and that no backward pass comes to.

    loss_kind, loss_angle = losses(batch)
    loss = loss_kind + loss_angle.item()     # a number: the head of the angles learns nothing
    loss.backward()

A loss that is only watched costs nothing by that, if what it was computed of is trained by another
one. It is told of where its graph leads to parameters of the optimizer that no other loss leads to
and that have had no gradient yet.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.leaves import leaves_of
from traindbg.hooks.torch.base.nodes import next_nodes

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.teller import Teller
    from traindbg.hooks.torch.base.watched import WatchedModels

_graph_task = getattr(torch._C, "_current_graph_task_id", None)
_MOST_LOSSES = 8  # of a step
_MOST_NODES = 64  # between a loss and the terms that it is the sum of


def _has_as_terms(root: torch.Tensor, wanted: set[Any]) -> bool:
    """Whether all of these nodes are found soon, from the root on."""
    if root.grad_fn is None:
        return not wanted
    nodes, seen, left = [root.grad_fn], {root.grad_fn}, set(wanted)
    left.discard(root.grad_fn)
    for node in nodes:
        if not left or len(nodes) > _MOST_NODES:
            break
        for after in next_nodes(node):
            left.discard(after)
            if after not in seen:
                seen.add(after)
                nodes.append(after)
    return not left


class _Loss:
    """One that was computed. Neither it nor its graph is kept alive."""

    __slots__ = ("leaves", "value")

    def __init__(self, value: weakref.ref[torch.Tensor]) -> None:
        self.value = value
        self.leaves: list[weakref.ref[torch.Tensor]] | None = None  # that its graph leads to


class LossesBeside:
    """One per recording, one thread. Holds no graph from one step to the next."""

    def __init__(self, teller: Teller, models: WatchedModels) -> None:
        self._teller = teller
        self._models = models
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._trained: set[int] = set()  # parameters that had a gradient at a look, by their ids
        self._was_told = False
        self.clear()

    def clear(self) -> None:
        """A step begins."""
        self._losses: list[_Loss] = []
        self._beside: list[weakref.ref[torch.Tensor]] = []
        self._reached: set[int] = set()

    def loss_computed(self, value: Any) -> None:
        """By a loss function, in training, at a step that is looked at."""
        if type(value) is not torch.Tensor or not value.requires_grad:
            return
        if len(self._losses) < _MOST_LOSSES:
            self._losses.append(_Loss(weakref.ref(value)))
            self._note_leaves()

    def _note_leaves(self) -> None:
        """Of several: one that a function adds up as a number is gone when the pass begins."""
        if len(self._losses) > 1:
            for known in self._losses:
                loss = known.value()
                if known.leaves is None and loss is not None:
                    known.leaves = [weakref.ref(leaf) for leaf in leaves_of(loss)]

    def backward_begins(self, root: Any) -> None:
        """Of any of the step's passes."""
        if type(root) is not torch.Tensor:
            return
        if _graph_task is not None and _graph_task() != -1:
            return  # within another one, as of a block that computes itself again: that one counts
        alive = [loss for known in self._losses if (loss := known.value()) is not None]
        are_all = len(alive) == len(self._losses)
        if are_all and not self._beside and _has_as_terms(root, {loss.grad_fn for loss in alive}):
            return
        reached = {id(leaf) for leaf in leaves_of(root)}
        self._reached |= reached
        for known in self._losses:
            loss = known.value()
            leaves = known.leaves or []
            if known.leaves is None and loss is not None:
                leaves = [weakref.ref(leaf) for leaf in leaves_of(loss)]
            self._beside += [leaf for leaf in leaves if id(leaf()) not in reached]
        self._losses = []

    def will_step(self, optimizer: torch.optim.Optimizer) -> None:
        """The step ends: tells of the parameters that only such losses lead to."""
        leaves = [leaf for known in self._beside if (leaf := known()) is not None]
        was_told, self._was_told = self._was_told, False
        owned = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        # At every look: heads that are trained in turn have a gradient at one of them.
        self._trained.update(id(tensor) for tensor in owned if tensor.grad is not None)
        if not leaves and not was_told:
            return
        wanted = {id(tensor) for tensor in owned} - self._trained - self._reached
        alone = {id(leaf) for leaf in leaves} & wanted
        names = [
            prefix + name
            for model, prefix in self._models.models()
            for name, parameter in model.named_parameters()
            if id(parameter) in alone
        ]
        if names:
            self._was_told = True
            place = names[0].rpartition(".")[0] or "model"  # a parameter of the root itself
            self._teller.fact("losses_left_out", len(names), place)
        elif was_told:
            self._teller.fact("losses_left_out", 0)
