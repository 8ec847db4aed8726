"""Losses that are not finite and that the loop leaves out, so that no backward pass shows them.

    loss = criterion(model(x))
    if not torch.isfinite(loss):
        continue

A model that is called again in a step, with no backward pass since its call before, may be in such
a loop. Only then it is listened to what the program asks of its losses: `isfinite`, `isnan`,
`isinf`, `item` and `float`. What was not finite, and was followed by another call of the model in
place of a backward pass, was left out. The answers are those that the program gets; no tensor of a
graph is kept.
"""

from __future__ import annotations

import functools
import math
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch_compiled import compiler_in_use
from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_guard import guarded
from traindbg.hooks.torch_later import may_read

if TYPE_CHECKING:
    from collections.abc import Callable

_STEPS_OF_A_LISTEN = 100  # without a loss that was left out
_MOST_LISTENS = 4
_UNTIL_A_STEP = 10  # losses that are left out, one after the other, are told as a step
_TENSOR = torch.Tensor
_ASKED: tuple[tuple[Any, str], ...] = (
    *((owner, name) for owner in (torch, _TENSOR) for name in ("isfinite", "isnan", "isinf")),
    *((_TENSOR, name) for name in ("item", "__float__")),
)
_SAYS_FINITE = "isfinite"


class Left(NamedTuple):
    """Losses that were left out in the step under way."""

    losses: int
    value: float  # of the last of them


class LeftLosses:
    """One per recording, one thread. `end_step` ends a step that no optimizer made."""

    def __init__(self, end_step: Callable[[], None] | None = None) -> None:
        self.end_step = end_step
        self._undo: list[Callable[[], None]] = []
        self._thread = 0
        self.forget()

    def forget(self) -> None:
        """Another model or training begins."""
        self.stop()
        self._listens = 0
        self._since = 0  # steps, when it last began to listen or heard something
        self._passes = 0  # backward passes of the step, at the model's last call
        self._value: float | None = None  # that was heard after it, and is not finite
        self._answer: tuple[torch.Tensor, bool] | None = None  # on a device, with what is bad of it
        self._count = 0
        self._last = math.nan

    def stop(self) -> None:
        """Listens no more."""
        while self._undo:
            self._undo.pop()()

    @property
    def is_listening(self) -> bool:
        return bool(self._undo)

    def called(self, passes: int, steps: int) -> None:
        """The model is, for the first time in a step."""
        self._passes, self._value, self._answer = passes, None, None
        if self._undo and steps - self._since > _STEPS_OF_A_LISTEN:
            self.stop()

    def called_again(self, passes: int, steps: int) -> bool:
        """The same, later in a step; whether there is something to tell when it ends."""
        value, answer = self._value, self._answer
        is_left = passes == self._passes
        self._passes, self._value, self._answer = passes, None, None
        if not is_left:
            return False
        if not self._undo:
            self._listen(steps)
            return False
        if value is None and answer is not None:
            with own_operations():
                value = math.nan if bool(answer[0].item()) is answer[1] else None
        if value is None:
            return False
        self._count += 1
        self._last, self._since = value, steps
        return True

    def read(self) -> Left | None:
        """The step ends: what was left out in it."""
        count, self._count = self._count, 0
        return Left(count, self._last) if count > 0 else None

    def _listen(self, steps: int) -> None:
        if self._listens >= _MOST_LISTENS or compiler_in_use():
            return
        self._listens += 1
        self._since, self._thread = steps, threading.get_ident()
        for owner, name in _ASKED:
            self._undo.append(_put(owner, name, self._heard))

    def _heard(self, name: str, tensor: torch.Tensor, result: Any) -> None:
        """The program asked a scalar that has a graph."""
        if threading.get_ident() != self._thread or capturing_graph(tensor):
            return
        if isinstance(result, float):
            self._take(result)
        elif may_read(tensor):
            with own_operations():
                self._take(float(tensor.detach()))
        elif isinstance(result, torch.Tensor):
            self._answer = result, name != _SAYS_FINITE

    def _take(self, value: float) -> None:
        if math.isfinite(value):
            return
        self._value = value
        if self._count >= _UNTIL_A_STEP and self.end_step is not None:
            self._value = None
            self._count += 1
            self.end_step()


def _put(
    owner: Any, name: str, heard: Callable[[str, torch.Tensor, Any], None]
) -> Callable[[], None]:
    """Has `heard` called of a function; returns what takes it off again."""
    original, is_own = getattr(owner, name), name in vars(owner)

    @functools.wraps(original)
    def ask(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        asked = args[0] if args else None
        if isinstance(asked, _TENSOR) and asked.grad_fn is not None and asked.numel() == 1:
            guarded("left losses", heard, name, asked, result)
        return result

    def undo() -> None:
        if vars(owner).get(name) is not ask:  # somebody wrapped it since
            return
        if is_own:
            setattr(owner, name, original)
        else:
            delattr(owner, name)

    setattr(owner, name, ask)
    return undo
