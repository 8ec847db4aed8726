"""Which of several forward and backward passes that share one optimizer step is under way.

With gradient accumulation a step has several micro-batches. A new one has begun when a watched
model is called after a backward pass began, or a part of one where the training calls only parts.
Where no call is seen (compiled code), it has when the same loss function is called again after a
backward pass, or, without one, backward is. Where several optimizers step in turns, each has its
own: losses are counted by turns, what forward passes show by steps.
"""

from __future__ import annotations

import torch

MOST = 64  # further ones of a step are not looked at

_graph_task = getattr(torch._C, "_current_graph_task_id", None)


def in_backward() -> bool:
    """Whether a backward pass runs: what is called in it is a checkpointed part, once more."""
    return _graph_task is not None and _graph_task() != -1


class MicroBatches:
    """Counts the micro-batches of the step under way, where that is wanted; else all is one."""

    def __init__(self) -> None:
        self.are_told_apart = False  # may change where a step ends
        self.number = 1
        self._before_turn = 0  # how many there were when another optimizer had stepped
        self._is_turn_over = False  # the next one is the first of a turn
        self._had_forward = False  # the call of a model was seen in this step
        self._had_backward = False  # a backward pass began in this micro-batch
        self._had_loss = False  # a loss was computed since
        self._losses: set[str] = set()  # that were computed in it

    @property
    def mark(self) -> str:
        """What the names of its tensors end with: nothing, `@2`, `@3`, ..."""
        return "" if self.number == 1 else f"@{self.number}"

    @property
    def number_of_turn(self) -> int:
        """The same within the turn of the optimizer that steps next."""
        return self.number - self._before_turn

    @property
    def loss_mark(self) -> str:
        """What the names of its losses end with."""
        return "" if self.number_of_turn == 1 else f"@{self.number_of_turn}"

    @property
    def is_beyond(self) -> bool:
        """Whether it is not looked at."""
        return self.number > MOST

    def forward_begins(self) -> None:
        """A watched model, or a part of one that is not called itself, is called in training."""
        if self.are_told_apart and not in_backward():
            self._had_forward = True
            if self._had_backward:
                self._next()

    def loss_computed(self, name: str) -> None:
        """In training, by a loss function."""
        if self.are_told_apart and not in_backward():
            if self._had_backward and not self._had_forward and name in self._losses:
                self._next()
            self._losses.add(name)
            self._had_loss = True

    def backward_begins(self) -> None:
        """Of anything; that of a checkpointed part inside of another one does not count."""
        if self.are_told_apart and not in_backward():
            if self._had_backward and not self._had_forward and not self._had_loss:
                self._next()
            self._had_backward, self._had_loss = True, False

    def turn_ended(self) -> None:
        """An optimizer that ends no step has stepped; another one may by the same passes."""
        self._is_turn_over = self._had_backward

    def step_ended(self) -> None:
        """The next step's first micro-batch begins."""
        self.number = 1
        self._before_turn, self._is_turn_over = 0, False
        self._had_forward = self._had_backward = self._had_loss = False
        self._losses.clear()

    def _next(self) -> None:
        if self._is_turn_over:
            self._before_turn, self._is_turn_over = self.number, False
        self.number += 1
        self._had_backward = False
        self._losses.clear()
