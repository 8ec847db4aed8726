"""Whether evaluations set random numbers back, so that training draws the same ones again.

A seed that is set inside of an evaluation, to make it comparable, is set for the training, too:
batches, masks of dropout and noise after it are those that came after the evaluation before. It
shows in the generators' states: the same at the first training step after each evaluation, though
steps between draw from them. States are read, never set, at two steps for each evaluation.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import torch

_MOST_EVALUATIONS = 64


def _words_of(state: Any) -> Any:
    """What can be hashed of a state of NumPy's: of any generator, with what it has drawn ahead."""
    if isinstance(state, dict):
        return tuple((name, _words_of(value)) for name, value in state.items())
    # An array may be printed in part.
    return state.tobytes() if hasattr(state, "tobytes") else repr(state)


def states() -> dict[str, int]:
    """A hash of the state of each generator that a training may draw from."""
    found = {
        "torch": hash(torch.get_rng_state().numpy().tobytes()),
        "random": hash(random.getstate()),
    }
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        # Of another generator than the usual one a warning would tell where it is asked for less.
        found["numpy.random"] = hash(_words_of(numpy_random.get_state(legacy=False)))
    if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
        found["torch.cuda"] = hash(torch.cuda.get_rng_state().numpy().tobytes())
    return found


class RandomStates:
    """One per recording; its calls come from the training's thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begins anew, as for another training."""
        self.is_due = False  # the next training step is to be looked at
        self._evaluated = False
        self._evaluations = 0
        self._first: dict[str, int] = {}  # after the last evaluation
        self._drawn_from: set[str] = set()  # from there to the second step, as last seen
        self._in_a_row = 0

    def evaluated(self) -> None:
        """A loss was computed in an evaluation."""
        self._evaluated = self.is_due = self._evaluations < _MOST_EVALUATIONS

    def trained(self) -> int | None:
        """A loss was computed in training: how many evaluations in a row have set a generator back.

        None at the second of the two steps, where there is nothing to tell.
        """
        now = states()
        if not self._evaluated:
            self._drawn_from = {
                name for name, state in now.items() if self._first.get(name, state) != state
            }
            self.is_due = False
            return None
        self._evaluated = False
        self._evaluations += 1
        is_set_back = any(
            self._first.get(name) == state and name in self._drawn_from
            for name, state in now.items()
        )
        self._in_a_row = self._in_a_row + 1 if is_set_back else 0
        self._first = now
        return self._in_a_row
