"""What the user, or a trainer, gives to be recorded: `traindbg.log` and `traindbg.save`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from traindbg import _core
from traindbg.hooks.torch.base.guard import boundary

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.unseen import Unseen
    from traindbg.hooks.torch.evaluations.phases import Evaluations
    from traindbg.hooks.torch.steps.by_hand import ByHand

_TRAIN = _core.TRAIN
_EVAL = _core.EVAL
_MOST_NAMES = 20  # of which it is said what was given and cannot be taken
_LONGEST_NAME = 200


def _array_of(value: Any) -> np.ndarray[Any, Any] | None:
    """A number or an array of NumPy's as an array; None for anything else."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return np.asarray(value)
    return None


def number_in(value: Any) -> float | None:
    """A number, or a tensor or array of one, as a float; None for anything else, such as a text.

    None as well for a number that is too large for a float, and where the value's own `__float__`
    raises.
    """
    try:
        if isinstance(value, torch.Tensor):
            value = value.detach()  # PyTorch warns of numbers with a gradient
        elif isinstance(value, (np.ndarray, np.generic)):
            value = value.item()  # NumPy warns of arrays, and takes complex numbers
        return None if isinstance(value, (str, bytes, bytearray)) else float(value)
    except Exception:
        return None


def _text_of(name: Any) -> str:
    try:
        return str(name)
    except Exception:
        return type(name).__name__


def _described(value: Any) -> str:
    """What was given, for people."""
    if value is None:
        return "None"
    if isinstance(value, (torch.Tensor, np.ndarray)):
        what = "a tensor" if isinstance(value, torch.Tensor) else "an array"
        try:
            return (
                f"{what} of shape {list(value.shape)} ({str(value.dtype).removeprefix('torch.')})"
            )
        except Exception:  # a nested tensor has none
            return what
    return f"a value of type {type(value).__name__}"


class UserValues:
    """One per recording. What is given between two steps is of the mode that the models are in."""

    def __init__(
        self,
        guard: Guard,
        tensors: Tensors,
        evaluations: Evaluations,
        unseen: Unseen,
        by_hand: ByHand,
    ) -> None:
        self.guard = guard
        self._session = tensors.session
        self._tensors = tensors
        self._evaluations = evaluations
        self._unseen = unseen
        self._by_hand = by_hand
        self._refused: set[str] = set()

    @boundary("metrics")
    def metric(self, name: str, value: float, evaluation: bool | None = None) -> None:
        """See `traindbg.log`; `evaluation`: whether it is of one; None: as it is at the moment."""
        self._by_hand.look()
        number = number_in(value)
        if number is None or not isinstance(name, str):
            what = f"metric/{_text_of(name)}"
            self._refuse(what, self._why_not_logged(name, value))
            return
        tensor_id = self._tensors.id_of(f"metric/{name}", "metric")
        mode = self._evaluations.mode() if evaluation is None else (_EVAL if evaluation else _TRAIN)
        if mode == _EVAL:
            self._evaluations.names.add(f"metric/{name}")
        self._session.observe_scalar(mode, tensor_id, number)

    @boundary("saved tensors")
    def save(self, name: str, value: Any) -> None:
        """See `traindbg.save`."""
        self._by_hand.look()
        readable = value if isinstance(value, torch.Tensor) else _array_of(value)
        if not isinstance(name, str):
            readable = None
        if readable is None or _core.readable(readable) == "no":
            self._refuse(f"custom/{_text_of(name)}", self._why_not_saved(name, value, readable))
            return
        mode = self._evaluations.mode()
        tensor_id = self._tensors.id_of(f"custom/{name}", "other", readable, always=True)
        if mode == _EVAL:
            self._evaluations.names.add(f"custom/{name}")
        if isinstance(readable, torch.Tensor):
            self._tensors.take(mode, tensor_id, readable)
        else:
            self._session.observe(mode, tensor_id, readable)

    def _why_not_logged(self, name: Any, value: Any) -> str:
        if not isinstance(name, str):
            return f"traindbg.log was given a name of type {type(name).__name__}; it takes a text"
        takes = "a number, or a tensor or array of one element"
        return f"traindbg.log was given {_described(value)}; it takes {takes}"

    def _why_not_saved(self, name: Any, value: Any, readable: Any) -> str:
        if not isinstance(name, str):
            return f"traindbg.save was given a name of type {type(name).__name__}; it takes a text"
        if readable is None:
            takes = "a tensor, an array or a number"
            return f"traindbg.save was given {_described(value)}; it takes {takes}"
        why = _core.why_unreadable(readable)
        return f"traindbg.save was given {_described(value)}, and {why}"

    def _refuse(self, what: str, why: str) -> None:
        """What a user gives is no failure of ours: it is counted, and said once for each name."""
        self._session.skip()
        what = what[:_LONGEST_NAME]
        if len(self._refused) < _MOST_NAMES:
            self._refused.add(what)
            self._unseen.say(f"given {what}", what, why)
        elif what not in self._refused:
            self._unseen.say(
                "given others",
                "some of what else traindbg.log and traindbg.save are given",
                f"it is like that of the {_MOST_NAMES} names that were told",
            )
