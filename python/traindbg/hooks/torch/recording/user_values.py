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


def _array_of(value: Any) -> np.ndarray[Any, Any] | None:
    """A number or an array of NumPy's as an array; None for anything else."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return np.asarray(value)
    return None


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

    @boundary("metrics")
    def metric(self, name: str, value: float, evaluation: bool | None = None) -> None:
        """See `traindbg.log`; `evaluation`: whether it is of one; None: as it is at the moment."""
        self._by_hand.look()
        tensor_id = self._tensors.id_of(f"metric/{name}", "metric")
        mode = self._evaluations.mode() if evaluation is None else (_EVAL if evaluation else _TRAIN)
        if mode == _EVAL:
            self._evaluations.names.add(f"metric/{name}")
        if isinstance(value, torch.Tensor):
            value = value.detach()  # PyTorch warns of numbers with a gradient
        self._session.observe_scalar(mode, tensor_id, float(value))

    @boundary("saved tensors")
    def save(self, name: str, value: Any) -> None:
        """See `traindbg.save`."""
        self._by_hand.look()
        if not isinstance(value, torch.Tensor):
            value = _array_of(value)
        if not isinstance(name, str) or value is None or _core.readable(value) == "no":
            self._session.skip()
            self._unseen.say(
                "saved",
                f"custom/{name}"[:200],
                "what was given to traindbg.save is no dense tensor, no array and no number; "
                "there may be more of them",
            )
            return
        mode = self._evaluations.mode()
        tensor_id = self._tensors.id_of(f"custom/{name}", "other", value, always=True)
        if mode == _EVAL:
            self._evaluations.names.add(f"custom/{name}")
        if isinstance(value, torch.Tensor):
            self._tensors.take(mode, tensor_id, value)
        else:
            self._session.observe(mode, tensor_id, value)
