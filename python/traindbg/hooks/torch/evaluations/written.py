"""Hears of evaluations whose loss no loss function computes, but the program, in plain arithmetic.

    with torch.no_grad():
        wrong += (model(x) - y).pow(2).sum().item()

Nothing calls us there but `item()`, or `float()`. Where the program's text says that what is read
is the training's loss (`text.written_text`), of what the model gave since the last such number, it
is recorded as what it is: the mean of the squared errors, under the name of `mse_loss` where that
is what the training lowers, or under the name of what it calls `backward()` on.

A program whose evaluations call loss functions is not listened to any more, once that is known. The
text is read once for each place where a number is read. No frame is kept, and of tensors nothing
but the losses of the first steps, each a single number.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.overrides import handle_torch_function, has_torch_function_unary

from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.sources import USERS, path_of, sources
from traindbg.hooks.torch.text.rounds_text import Text, read
from traindbg.hooks.torch.text.written_text import (
    ABSOLUTES,
    LOSS,
    MEAN,
    ROOT,
    SQUARES,
    SUM,
    Meaning,
    meaning_of,
    node_at,
    read_by,
    trained_by,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Callable
    from types import CodeType, FrameType

    from traindbg._core import HotPath

_MOST_PLACES = 12  # at which numbers are read
_MOST_FRAMES = 60
_MOST_CALLS = 8  # of the model, at different places
_MOST_LOSSES = 4  # of the first steps
_MOST_EVALUATIONS = 8  # in which nothing was found
_FAR_ABOVE = 4  # what a training began with
_FUNCTIONS = {SQUARES: "mse_loss", ABSOLUTES: "l1_loss"}


class _Numbers:
    """Of the process: who hears of the numbers that are read of tensors."""

    hears: Callable[[Any, Any, FrameType], None] | None = None


numbers = _Numbers()


def listening_number(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Tensor.item` and `Tensor.__float__`."""

    @functools.wraps(original)
    def number(self: Any, *args: Any, **kwargs: Any) -> Any:
        if has_torch_function_unary(self):  # is to be told of the original, not of us
            return handle_torch_function(original, (self,), self, *args, **kwargs)
        value = original(self, *args, **kwargs)
        hears = numbers.hears
        if hears is not None:
            hears(self, value, sys._getframe(1))
        return value

    number.__module__ = "torch"  # where pickle finds it
    number.__qualname__ = f"Tensor.{original.__name__}"
    return number


class Told(NamedTuple):
    """A number of an evaluation. `function`: of torch.nn.functional; empty: the loss itself."""

    function: str
    value: float


class _Call(NamedTuple):
    """A place in the program's code. The code is kept, so that no other has its id."""

    code: CodeType
    instruction: int

    @property
    def key(self) -> tuple[int, int]:
        return id(self.code), self.instruction


class _Place(NamedTuple):
    """Where a number is read. `model`: where the model was called whose number it is."""

    at: _Call
    function: str | None = None  # None: it is something else
    how: str = ""
    model: tuple[int, int] | None = None


def _innermost() -> _Call | None:
    """Where the program itself calls what is running now."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        if sources.owner(frame.f_code.co_filename) == USERS:
            return _Call(frame.f_code, frame.f_lasti)
        frame = frame.f_back
    return None


class WrittenEvaluations:
    """One per recording. `listen(on)`: to the numbers that are read of tensors, or no more."""

    def __init__(self, hot: HotPath, listen: Callable[[bool], None]) -> None:
        self.told: Callable[[Told], None] | None = None  # hears of them
        self._hot = hot
        self._listen = listen
        self._is_over = self._listens = False
        self._thread = 0  # of the training
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._trained_with: set[str] = set()  # of `_FUNCTIONS`
        self._trains_otherwise = False  # by other functions, by sums, or of other than outputs
        self._losses: list[torch.Tensor] = []  # of the first steps
        self._output: weakref.ref[torch.Tensor] | None = None  # of the model, in training
        self._calls: dict[tuple[int, int], _Call] = {}  # where the model is called
        self._places: dict[tuple[int, int], _Place] = {}
        self._text: tuple[str, Text | None] | None = None  # of the file that was read last
        self._step = -1
        self._evaluations = 0  # with nothing found
        self._last: _Call | None = None  # of the model, of which no number was read
        self._elements = 0  # that it returned there
        self._passes = 0  # of it since the last number

    def end(self) -> None:
        """Evaluations are heard of otherwise, or it is over."""
        if self._is_over:
            return
        self._is_over = True
        self.forget()
        if numbers.hears == self._heard:
            numbers.hears = None
        if self._listens:
            self._listens = False
            self._listen(False)

    @property
    def listens(self) -> bool:
        """Whether it is to hear of what the model returns in evaluations."""
        return len(self._losses) > 0 and self._trains_alike

    @property
    def _trains_alike(self) -> bool:
        return not (self._trains_otherwise or len(self._trained_with) > 1)

    # A training.

    def model_trains(self, output: Any) -> None:
        """The model has returned, in a step of the training that is looked at."""
        if self._is_over:
            return
        self._output = weakref.ref(output) if type(output) is torch.Tensor else None
        self._note(_innermost())

    def trained_by(self, function: str, value: torch.Tensor, given: Any, is_mean: bool) -> None:
        """A loss function's value has a gradient."""
        if self._is_over:
            return
        output = None if self._output is None else self._output()
        is_output = output is not None and type(given) is torch.Tensor
        is_output = is_output and given.data_ptr() == output.data_ptr()  # type: ignore[union-attr]
        is_output = is_output and given.numel() == output.numel()  # type: ignore[union-attr]
        is_known = is_mean and function in _FUNCTIONS.values() and value.numel() == 1
        if not is_known or (output is not None and not is_output):
            self._trains_otherwise = True
        else:
            self._trained_with.add(function)
            self._keep(value)

    def lowered(self, root: torch.Tensor) -> None:
        """`backward` is called on it, and no loss function was heard."""
        if not self._is_over:
            self._keep(root)

    def _keep(self, loss: torch.Tensor) -> None:
        if len(self._losses) < _MOST_LOSSES:
            self._losses.append(loss.detach())

    # An evaluation.

    def model_returned(self, output: Any, step: int) -> None:
        """In an evaluation, before so many-th step of the training."""
        if not self.listens or self.told is None or step == 0:
            return
        if step != self._step:
            self._step = step
            self._text = None
            self._passes = 0
            self._evaluations += 1
        if self._evaluations > _MOST_EVALUATIONS:
            self.end()
            return
        if not self._listens:
            self._listens = True
            self._listen(True)
        is_plain = type(output) is torch.Tensor and output.is_floating_point()
        self._last, self._elements = _innermost(), output.numel() if is_plain else 0
        self._passes += 1
        self._note(self._last)
        self._thread = threading.get_ident()
        numbers.hears = self._heard

    def _note(self, call: _Call | None) -> None:
        if call is not None and len(self._calls) < _MOST_CALLS:
            self._calls.setdefault(call.key, call)

    def _heard(self, tensor: Any, value: Any, frame: FrameType) -> None:
        if threading.get_ident() != self._thread:
            return
        if torch.is_grad_enabled():
            numbers.hears = self._text = None  # the training goes on
            return
        if self._last is None or type(value) is not float or type(tensor) is not torch.Tensor:
            return
        if sources.owner(frame.f_code.co_filename) == USERS:
            begin = time.perf_counter_ns()
            guarded("written evaluations", self._number_read, value, frame)
            self._hot.nanos += time.perf_counter_ns() - begin

    def _number_read(self, value: float, frame: FrameType) -> None:
        at = _Call(frame.f_code, frame.f_lasti)
        is_new = at.key not in self._places
        if is_new and len(self._places) >= _MOST_PLACES:
            return
        if is_new:
            self._places[at.key] = self._place_of(at)
        place = self._places[at.key]
        if place.function is None or self._last is None or place.model != self._last.key:
            return
        if place.how == SUM and self._elements > 0:
            value /= self._elements
        elif place.how == ROOT:
            value *= value
        elif place.how != MEAN:
            return
        if is_new and not self._may_be_a_loss(value):
            self._places[at.key] = _Place(at)
            return
        passes, self._last, self._passes, self._evaluations = self._passes, None, 0, 0
        if self.told is not None and passes == 1:  # else of a sequence of them
            self.told(Told(place.function, value))

    def _may_be_a_loss(self, value: float) -> bool:
        """Beside those of the first steps: not in another unit, and not exactly right."""
        known = [float(loss) for loss in self._losses]
        return bool(known) and 0 < value < _FAR_ABOVE * max(known)

    def _place_of(self, at: _Call) -> _Place:
        file = at.code.co_filename
        if self._text is None or self._text[0] != file:
            self._text = file, read(path_of(file), {}, [at.code])
        text = self._text[1]
        call = None if text is None else node_at(text, *at)
        value = None if call is None else read_by(call)
        if text is None or value is None:
            return _Place(at)
        models: dict[ast.AST, tuple[int, int]] = {}
        for known in self._calls.values():
            node = node_at(text, *known) if known.code.co_filename == file else None
            if node is not None:
                models[node] = known.key
        found = meaning_of(value, text, models)
        if found is None or found.model is None:
            return _Place(at)
        function = self._function_of(found, trained_by(text, models))
        return _Place(at, function, found.how, models[found.model])

    def _function_of(self, found: Meaning, trained: Meaning | None) -> str | None:
        """What the training lowers, if that is what was read."""
        if not self._trains_alike:
            return None
        if found.of == LOSS:
            return None if self._trained_with else ""
        if self._trained_with:
            function = _FUNCTIONS[found.of]
            return function if function in self._trained_with else None
        is_that = trained is not None and trained.of == found.of
        return "" if is_that else None
