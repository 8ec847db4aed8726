"""Whether gradients are clipped where there are none yet: between a step and the next backward.

Only at steps that are looked at. What is clipped after a step and used by the step of another
optimizer, before any backward pass, is in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traindbg.hooks.torch_tensors import Tensors


class Clips:
    """Of the step under way."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._waiting = False  # clipped before any pass; what comes next tells whether in vain
        self._in_vain = 0
        self._in_time = 0
        self._limit = 0.0  # of the norm, that was asked for in vain; 0: not known

    def clipped(self, limit: Any, is_before: bool) -> None:
        """Gradients were clipped; `is_before`: before any backward pass of the step."""
        if not is_before:
            self._in_time += 1
            return
        self._waiting = True
        self._limit = float(limit) if isinstance(limit, (int, float)) else 0.0

    def backward_begins(self) -> None:
        """What was clipped so far were no gradients of this pass."""
        self._in_vain += self._waiting
        self._waiting = False

    def will_step(self, drives: bool) -> None:
        """An optimizer is about to step; `drives`: it is the one whose steps count."""
        self._waiting = False
        if not drives:
            return
        if self._in_vain or self._in_time:
            is_in_vain = self._in_vain > 0 and self._in_time == 0
            self._tensors.fact("clipped_in_vain", float(is_in_vain))
            if is_in_vain and self._limit > 0:
                self._tensors.fact("clip_limit", self._limit)
        self._in_vain = self._in_time = 0
