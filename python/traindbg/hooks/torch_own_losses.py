"""The loss of evaluations where the program computes it by a function of its own.

What PyTorch's loss functions return is heard where they are called. Of a loss that is written out,
such as the partial likelihood of Cox or an ELBO, `backward` tells in training what it is; in an
evaluation nothing does. So at first steps it is looked for which of the program's functions
returned what `backward` was called on: Python tells which functions return (`sys.setprofile`), from
when the model has returned until the backward pass begins. Two steps must agree. From then on the
same is asked for in evaluations, until the model is called again or a step ends. Nothing of the
program's is called or replaced.

While somebody else is told (a profiler, a coverage tool), or while a compiler is in use, nothing is
looked for. How much is told is limited: a pass in which the function does not return within that
has no loss.
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch_compiled import compiler_in_use
from traindbg.hooks.torch_guard import guarded
from traindbg.hooks.torch_nodes import next_nodes
from traindbg.hooks.torch_sources import is_of_program

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType

    from traindbg import _core

_STEPS = 2  # that agree
_MOST_STEPS = 6  # that are looked at
_MOST_TOLD = 20_000  # calls and returns, in a step that is looked at
_MOST_TOLD_OF_EVALUATIONS = 2_000  # after a pass
_MOST_UNHEARD = 20  # passes of evaluations, in all
_MOST_RETURNED = 64  # losses that functions return in a step
_MOST_PARTS = 8  # of a tuple or a dict that is looked into

_Key = int | str | None  # of what a function returns, where the loss is; None: it is the loss


def _parts_of(returned: Any) -> list[tuple[_Key, torch.Tensor]]:
    """What of it can be a loss."""
    parts: list[tuple[_Key, Any]] = [(None, returned)]
    if type(returned) in (tuple, list) and len(returned) <= _MOST_PARTS:
        parts = list(enumerate(returned))
    elif type(returned) is dict and len(returned) <= _MOST_PARTS:
        parts = [(key, part) for key, part in returned.items() if type(key) is str]
    return [
        (key, part)
        for key, part in parts
        if type(part) is torch.Tensor and part.numel() == 1 and part.is_floating_point()
    ]


class _Told:
    """Hears which functions return, for a while. One thread's."""

    def __init__(
        self, most: int, of: CodeType | None, returns: Callable[[CodeType, Any], bool]
    ) -> None:
        self._left = most
        self._of = of  # None: of any
        self._returns = returns  # answers whether that was enough
        self._thread = threading.get_ident()

    def begin(self) -> bool:
        """False where somebody else is told."""
        if sys.getprofile() is not None:
            return False
        sys.setprofile(self._tell)
        return True

    def end(self) -> None:
        self._left = -1  # of another thread: it ends itself
        if threading.get_ident() == self._thread and sys.getprofile() == self._tell:
            sys.setprofile(None)

    def _tell(self, frame: FrameType, event: str, returned: Any) -> None:
        self._left -= 1
        if self._left < 0:
            self.end()
            return
        if event != "return" or returned is None:
            return
        if self._of is not None and frame.f_code is not self._of:
            return
        if guarded("own losses", self._returns, frame.f_code, returned):
            self.end()


class OwnLosses:
    """One per recording. Owns what is known of the function; holds no tensor."""

    def __init__(self, hot: _core.HotPath) -> None:
        self.take: Callable[[torch.Tensor], None] | None = None  # a loss of an evaluation
        self._hot = hot
        self._is_wanted = False
        self._told: _Told | None = None
        self.forget()

    def follow(self, is_wanted: bool) -> None:
        """Losses of evaluations are asked for, or not."""
        self._is_wanted = is_wanted

    def forget(self) -> None:
        """Another training begins."""
        self._stop()
        self._is_over = False
        self._code: CodeType | None = None
        self._key: _Key = None
        self._agreed = 0
        self._looked = 0  # steps that were looked at
        self._unheard = 0
        self._step = -1  # that was looked at last
        self._returned: list[tuple[CodeType, _Key, weakref.ref[torch.Tensor]]] = []

    def end(self) -> None:
        """A function of PyTorch gives the loss, or nothing can be found."""
        self._stop()
        self._is_over = True
        self._code = None
        self._returned = []

    def _stop(self) -> None:
        if self._told is not None:
            self._told.end()
            self._told = None

    @property
    def listens(self) -> bool:
        """Whether it is to be heard when the model returns in an evaluation."""
        return self._agreed >= _STEPS and not self._is_over

    # The training.

    def trains(self) -> None:
        """The model has returned, in a step of the training."""
        self._stop()
        if self._is_over or not self._is_wanted or self._agreed >= _STEPS:
            return
        if self._looked >= _MOST_STEPS or compiler_in_use():
            self.end()
        elif self._step != self._hot.steps:  # the first pass of a step
            self._returned = []
            self._tell(_MOST_TOLD, None, self._returns)

    def _tell(
        self, most: int, of: CodeType | None, returns: Callable[[CodeType, Any], bool]
    ) -> None:
        told = _Told(most, of, returns)
        if told.begin():
            self._told = told

    def _returns(self, code: CodeType, returned: Any) -> bool:
        for key, part in _parts_of(returned):
            if part.requires_grad and is_of_program(code):
                self._returned.append((code, key, weakref.ref(part)))
        return len(self._returned) >= _MOST_RETURNED

    def backward_begins(self, root: Any, is_scaled: bool) -> None:
        """`is_scaled`: by a GradScaler."""
        if self._told is None:
            return
        self._stop()
        self._looked += 1
        self._step = self._hot.steps
        returned, self._returned = self._returned, []
        found = _found_among(returned, root, is_scaled)
        if found is None or (self._code is not None and found != (self._code, self._key)):
            self.end()  # of several losses nothing says which one an evaluation is about
            return
        self._code, self._key = found
        self._agreed += 1

    # An evaluation.

    def step_ends(self) -> None:
        """What was not returned by now does not come."""
        self._stop()

    def pass_begins(self) -> None:
        """The model is called: of an evaluation that is the next batch."""
        if self.listens:
            self._stop()

    def evaluates(self) -> None:
        """The model has returned, in a pass of an evaluation."""
        self._stop()
        if not self.listens:
            return
        self._unheard += 1
        if self._unheard > _MOST_UNHEARD or compiler_in_use():
            self.end()
        else:
            self._tell(_MOST_TOLD_OF_EVALUATIONS, self._code, self._evaluated)

    def _evaluated(self, _: CodeType, returned: Any) -> bool:
        for key, part in _parts_of(returned):
            if key == self._key and not part.requires_grad and self.take is not None:
                self._unheard = 0
                self.take(part)
        return False  # several may be computed of what one pass gave


def _found_among(
    returned: list[tuple[CodeType, _Key, weakref.ref[torch.Tensor]]], root: Any, is_scaled: bool
) -> tuple[CodeType, _Key] | None:
    """The innermost function that returned what the backward pass begins with."""
    node = root.grad_fn if is_scaled and isinstance(root, torch.Tensor) else None
    scaled = next_nodes(node) if node is not None else []
    for code, key, reference in returned:
        tensor = reference()
        if tensor is None:
            continue
        if tensor is root or any(tensor.grad_fn is each for each in scaled):
            return code, key
    return None
