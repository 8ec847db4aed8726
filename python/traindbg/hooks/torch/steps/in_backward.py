"""Optimizers that step inside of the backward pass: one for each parameter, as gradients come.

So memory for gradients is saved (`Tensor.register_post_accumulate_grad_hook`). The step of the
whole is the pass: it ends when the pass has, not with the step of the optimizer that happens to be
first, so that what the others do is of the same step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import torch

from traindbg.hooks.torch.steps import patches

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg import _core

_graph_task = getattr(torch._C, "_current_graph_task_id", None)


def in_backward() -> bool:
    """Whether a backward pass runs in this thread."""
    return _graph_task is not None and _graph_task() != -1


class Host(Protocol):
    """Who ends steps (the recording)."""

    def step_of_pass(self) -> None: ...


class StepsInBackward:
    """One per recording. `arm` is called when there are no ordinary steps any more."""

    def __init__(self, host: Host, hot: _core.HotPath, arm: Callable[[], None]) -> None:
        self.are_made = False  # some were
        self._waits = False  # the optimizer that drives has stepped in the pass that runs
        self._host = host
        self._hot = hot
        self._arm = arm

    def will_step(self) -> None:
        """An optimizer is about to step."""
        if not self.are_made and in_backward():
            self.are_made = True
            self.step_begins()
            self._arm()

    def puts_off(self) -> bool:
        """The one that drives has stepped: whether the step ends later."""
        self._waits = self.are_made and in_backward()
        return self._waits

    def step_begins(self) -> None:
        """Asks to hear of the end of passes."""
        if self.are_made:
            self._hot.due |= patches.ENDS_OF_PASSES

    def look(self) -> None:
        """Something is heard: the step ends, if the pass has. Raises TrainingStopped."""
        if self._waits and not in_backward():
            self._waits = False
            self._host.step_of_pass()
