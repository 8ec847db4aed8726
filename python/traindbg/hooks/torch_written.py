"""Hears of evaluations whose loss no loss function computes, but the program, in plain arithmetic.

    with torch.no_grad():
        wrong += (model(x) - y).pow(2).sum().item()

Nothing calls us there but `item()`, or `float()`. Where the program's text says that what is read
is the training's loss (`torch_written_text`), of what the model gave since the last such number, it
is recorded as what it is: the mean of the squared errors, under the name of `mse_loss` where that
is what the training lowers, or under the name of what it calls `backward()` on.

A program whose evaluations call loss functions is not listened to any more, once that is known. The
text is read once for each place where a number is read. No frame and no tensor is kept.
"""

from __future__ import annotations

import functools
import sys
import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch_guard import guarded
from traindbg.hooks.torch_rounds_text import Scope, Text, read
from traindbg.hooks.torch_sources import USERS, path_of, sources
from traindbg.hooks.torch_written_text import (
    ABSOLUTES,
    LOSS,
    MEAN,
    MEANS,
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

_MOST_PLACES = 16  # at which numbers are read
_MOST_FRAMES = 60
_MOST_CALLS = 16  # of the model, at different places
_FUNCTIONS = {SQUARES: "mse_loss", ABSOLUTES: "l1_loss"}


class _Numbers:
    """Of the process: who hears of the numbers that are read of tensors."""

    hears: Callable[[Any, Any, FrameType], None] | None = None


numbers = _Numbers()


def listening_number(original: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`Tensor.item` and `Tensor.__float__`."""

    @functools.wraps(original)
    def number(self: Any) -> Any:
        value = original(self)
        hears = numbers.hears
        if hears is not None:
            hears(self, value, sys._getframe(1))
        return value

    number.traindbg = True  # type: ignore[attr-defined]  # it is there already
    return number


class Told(NamedTuple):
    """A number of an evaluation. `function`: of torch.nn.functional; empty: the loss itself."""

    function: str
    value: float


class _Place(NamedTuple):
    """Where a number is read. `code` is kept, so that no other has its id."""

    code: CodeType
    function: str | None  # None: it is something else
    how: str


class WrittenEvaluations:
    """One per recording. `listen()` is called before there may be any."""

    def __init__(self, listen: Callable[[], None]) -> None:
        self.told: Callable[[Told], None] | None = None  # hears of them
        self._listen = listen
        self._is_over = False
        self._thread = 0  # of the training
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self._trained_with: set[str] = set()  # of `_FUNCTIONS`
        self._trains_otherwise = False  # by other functions, or by sums
        self._places: dict[tuple[int, int], _Place] = {}
        self._called: dict[tuple[int, int], CodeType] = {}  # where the model is called
        self._texts: dict[str, Text | None] = {}  # of this evaluation
        self._step = -1
        self._calls = self._elements = 0

    def end(self) -> None:
        """Evaluations are heard of otherwise, or it is over."""
        self._is_over = True
        self.forget()
        if numbers.hears == self._heard:
            numbers.hears = None

    def trained_by(self, function: str, is_mean: bool) -> None:
        """A loss function's value has a gradient."""
        if is_mean and function in _FUNCTIONS.values():
            self._trained_with.add(function)
        else:
            self._trains_otherwise = True

    def model_returned(self, output: Any, step: int) -> None:
        """In an evaluation, before so many-th step of the training."""
        if self._is_over or self.told is None:
            return
        if self._step < 0:
            self._listen()
        if step != self._step:
            self._texts.clear()
            self._step, self._calls, self._elements = step, 0, 0
        tensor = output if isinstance(output, torch.Tensor) else None
        self._calls += 1
        self._elements += 0 if tensor is None else tensor.numel()
        self._note_frames()
        self._thread = threading.get_ident()
        numbers.hears = self._heard

    def _training_goes_on(self) -> None:
        """What is read from now on is of the training."""
        self._texts.clear()
        if numbers.hears == self._heard:
            numbers.hears = None

    def _note_frames(self) -> None:
        frame: FrameType | None = sys._getframe(2)
        for _ in range(_MOST_FRAMES):
            if frame is None or len(self._called) >= _MOST_CALLS:
                return
            code = frame.f_code
            if sources.owner(code.co_filename) == USERS:
                self._called.setdefault((id(code), frame.f_lasti), code)
                if code.co_name == "<module>":
                    return
            frame = frame.f_back

    def _heard(self, tensor: Any, value: Any, frame: FrameType) -> None:
        if threading.get_ident() != self._thread:
            return
        if torch.is_grad_enabled():
            self._training_goes_on()
        elif self._calls == 0 or type(value) is not float or type(tensor) is not torch.Tensor:
            return
        elif sources.owner(frame.f_code.co_filename) == USERS:
            guarded("written evaluations", self._number_read, value, frame)

    def _number_read(self, value: float, frame: FrameType) -> None:
        key = id(frame.f_code), frame.f_lasti
        place = self._places.get(key)
        if place is None:
            if len(self._places) >= _MOST_PLACES:
                return
            place = self._places[key] = self._place_of(frame)
        if place.function is None:
            return
        calls, elements, how = self._calls, self._elements, place.how
        if how in (MEAN, ROOT) and place.function and calls != 1:
            return  # of one of several passes, or of a sequence of them
        if how == SUM:
            if elements == 0:
                return
            value /= elements
        elif how == MEANS:
            value /= calls
        elif how == ROOT:
            value *= value
        self._calls = self._elements = 0
        if self.told is not None:
            self.told(Told(place.function, value))

    def _place_of(self, frame: FrameType) -> _Place:
        code = frame.f_code
        unknown = _Place(code, None, "")
        file = code.co_filename
        text = self._text_of(file, frame)
        call = None if text is None else node_at(text, code, frame.f_lasti)
        value = None if call is None else read_by(call)
        if text is None or value is None:
            return unknown
        models: set[ast.AST] = set()
        for (_, instruction), called in self._called.items():
            node = node_at(text, called, instruction) if called.co_filename == file else None
            models.update([] if node is None else [node])
        found = meaning_of(value, Scope(text, text.scope_of(value)), models)
        return _Place(code, self._function_of(found, text), "" if found is None else found.how)

    def _text_of(self, file: str, frame: FrameType) -> Text | None:
        if file not in self._texts:
            self._texts[file] = read(path_of(file), frame.f_globals, [frame.f_code])
        return self._texts[file]

    def _function_of(self, found: Meaning | None, text: Text) -> str | None:
        """What the training lowers, if that is what was read."""
        if found is None:
            return None
        if found.of == LOSS:
            return None if self._trained_with or self._trains_otherwise else ""
        function = _FUNCTIONS[found.of]
        if self._trained_with or self._trains_otherwise:
            is_that = self._trained_with == {function} and not self._trains_otherwise
            return function if is_that else None
        return "" if trained_by(text) == Meaning(found.of, MEAN) else None
