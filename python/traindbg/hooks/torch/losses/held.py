"""Graphs of losses that are never let go: a list of losses, outputs or features, or a sum of them.

At the steps that are due a token is left in the metadata of the node that a loss's graph begins
with. It lives as long as anything is there that was computed from it: the loss, what the model
returned, or what a hook took out of its middle. What is kept here is a weak reference to it.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

from traindbg.hooks.torch.base.names import tensors_in

_KEY = "traindbg_held"
_MOST_MARKS = 256
_MOST_NODES = 1024
_FRESH = 2  # steps in which a variable of the loop may still name a loss
_FRESH_UNUSED = 20  # the same, of one that no backward pass went through


class _Token:
    __slots__ = ("__weakref__",)


class _Mark:
    __slots__ = ("is_used", "step", "token")

    def __init__(self, step: int, token: _Token) -> None:
        self.step = step
        self.token = weakref.ref(token)
        self.is_used = False  # by a backward pass


def _beginning(node: Any) -> Any:
    """Where the graph of a node begins, along one of its paths."""
    for _ in range(_MOST_NODES):
        for other, _ in node.next_functions:
            if other is not None and not other.name().endswith("AccumulateGrad"):
                node = other
                break
        else:
            break
    return node


class GraphsHeld:
    """Of the losses of one recording."""

    def __init__(self) -> None:
        self._marks: list[_Mark] = []

    def loss_computed(self, step: int, loss: Any) -> None:
        """At a step that is due; nothing where it has no graph."""
        self._mark(step, loss)

    def returned(self, step: int, output: Any) -> None:
        """By a model in training, at a step that is due: what is kept may be no loss at all."""
        first = next(iter(tensors_in(output, 2)), None)
        if first is not None:
            self._mark(step, first[1])

    def backward_begins(self, step: int, root: Any) -> None:
        """Of `root`, a loss of the training."""
        mark = self._mark(step, root)
        if mark is not None:
            mark.is_used = True

    def _mark(self, step: int, loss: Any) -> _Mark | None:
        node = loss.grad_fn if isinstance(loss, torch.Tensor) else None
        if node is None:
            return None
        held = getattr(_beginning(node), "metadata", None)
        if not isinstance(held, dict):
            return None
        known = held.get(_KEY)
        if known is not None:
            return next((mark for mark in reversed(self._marks) if mark.token() is known), None)
        if len(self._marks) >= _MOST_MARKS:
            return None
        token = held[_KEY] = _Token()
        mark = _Mark(step, token)
        self._marks.append(mark)
        return mark

    def held(self, step: int) -> list[tuple[bool, int, int]]:
        """How many of the graphs that were marked some steps ago are still there, and of how many.

        Of those that a backward pass went through and of the others, such as those of evaluations:
        whether it did, alive, all. What had no marks is left out.
        """
        used = [mark for mark in self._marks if mark.is_used and mark.step + _FRESH <= step]
        unused = [
            mark for mark in self._marks if not mark.is_used and mark.step + _FRESH_UNUSED <= step
        ]
        return [
            (is_used, sum(mark.token() is not None for mark in marks), len(marks))
            for is_used, marks in ((True, used), (False, unused))
            if marks
        ]

    def clear(self) -> None:
        """Forgets all."""
        self._marks.clear()
