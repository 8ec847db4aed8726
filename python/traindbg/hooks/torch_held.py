"""Graphs of losses that are never let go: a list of losses, or a sum of them, that keeps them all.

At the steps that are due a token is left in the metadata of two nodes of a loss's graph, that of
the loss and that of what it was computed from; it lives as long as they do. What is kept here is a
weak reference to it.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

_KEY = "traindbg_held"
_MOST_MARKS = 256
_FRESH = 2  # steps in which a variable of the loop may still name a loss


class _Token:
    __slots__ = ("__weakref__",)


class GraphsHeld:
    """Of one loop's losses. One per recording."""

    def __init__(self) -> None:
        self._marks: dict[bool, list[tuple[int, list[weakref.ref[_Token]]]]] = {
            False: [],
            True: [],
        }

    def mark(self, step: int, is_evaluation: bool, *tensors: Any) -> None:
        """`tensors`: a loss, and what it was computed from. Those without a graph do not count."""
        marks = self._marks[is_evaluation]
        tokens: list[weakref.ref[_Token]] = []
        for tensor in tensors:
            node = tensor.grad_fn if isinstance(tensor, torch.Tensor) else None
            held = getattr(node, "metadata", None)
            if isinstance(held, dict):
                token = held[_KEY] = _Token()
                tokens.append(weakref.ref(token))
        if not tokens:
            return
        if marks and marks[-1][0] == step and not is_evaluation:
            marks[-1][1].extend(tokens)  # micro-batches
        elif len(marks) < _MOST_MARKS:
            marks.append((step, tokens))

    def held(self, step: int) -> list[tuple[bool, int, int]]:
        """How many of the graphs that were marked some steps ago are still there, and of how many.

        Of training and of evaluations each, as far as there were marks: is_evaluation, alive, all.
        """
        found: list[tuple[bool, int, int]] = []
        for is_evaluation, marks in self._marks.items():
            old = [tokens for at, tokens in marks if at + _FRESH <= step]
            if is_evaluation:
                old = old[:-1]  # the last one's variable lives on
            if old:
                alive = sum(any(token() is not None for token in tokens) for tokens in old)
                found.append((is_evaluation, alive, len(old)))
        return found

    def clear(self) -> None:
        """Forgets all."""
        for marks in self._marks.values():
            marks.clear()
