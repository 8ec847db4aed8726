"""Passes without gradients that no loss follows, so that they belong to no evaluation that ends.

An agent that acts, a solver that calls its model a thousand times, answers that are only counted:
the first ones are looked at, and of the rest a few, or else a training would pay for each. What
other passes return is heard as long as a loss may be made of it, which then ends the evaluation.
"""

from __future__ import annotations

import enum

_MOST_PASSES = 32  # between two steps of the training
_MOST_PHASES = 32  # between two steps, that have such passes and are looked at
_ONE_OF = 16  # of those that come later


class Attention(enum.Enum):
    """What is wanted of a pass."""

    ALL = enum.auto()
    RETURN = enum.auto()  # what it returns, where somebody listens to that
    NONE = enum.auto()


class Unended:
    """Counts them. One per sink."""

    def __init__(self) -> None:
        self._ended = self._steps = -1
        self._phases = self._passes = 0

    def attention(self, ended: int, steps: int) -> Attention:
        """To one more pass; `ended`: evaluations that have; `steps`: of the training."""
        if ended != self._ended:
            self._ended, self._steps = ended, -1
            self._phases = 0
        if steps != self._steps:
            self._steps = steps
            self._phases += 1
            self._passes = 0
        self._passes += 1
        if self._phases > _MOST_PHASES and self._phases % _ONE_OF != 0:
            return Attention.NONE
        if self._passes <= _MOST_PASSES:
            return Attention.ALL
        return Attention.RETURN if self._phases <= _MOST_PHASES else Attention.NONE
