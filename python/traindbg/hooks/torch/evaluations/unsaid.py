"""Dropout by a function that goes on in evaluations, because it was not told of the mode.

    h = F.dropout(h, 0.5)                                   # training=self.training is missing
    h = F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)

`model.eval()` reaches modules, not functions. The first batches of few evaluations are looked at:
the model is in evaluation mode with all of its modules, and no gradients are made. Where the call
says `training`, whatever it says is meant: some generators keep their dropout. Nor is a model
looked at that is given the same input several times in one evaluation, as for Monte-Carlo dropout:
the same tensor twice in a row, or values that the evaluation began with for the third time.

What a call says is read from its instruction. No tensor is kept, but the first values of one.
"""

from __future__ import annotations

import dis
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.shards import has_values

if TYPE_CHECKING:
    from types import FrameType

    from traindbg.hooks.torch.base.later import Later

_ATTENTION = functional.scaled_dot_product_attention
_DROPOUTS = frozenset(
    getattr(functional, name)
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d")
    if hasattr(functional, name)
)
WATCHED: frozenset[Any] = _DROPOUTS | {_ATTENTION}

# In evaluations they take a faster path, with other last bits, where nobody listens to functions.
_LEFT_ALONE = (nn.MultiheadAttention, nn.TransformerEncoder, nn.TransformerEncoderLayer)
_MOST_EVALUATIONS = 4
_MOST_PASSES = 2  # of one
_MOST_PLACES = 8
_MOST_COMPARED = 64  # inputs of an evaluation
_VALUES = 64  # of each
_TIMES = 3  # that the first input comes: loss and accuracy may be computed apart
_POSITION = 2  # of `training` among the arguments
_RATE = 4  # of `dropout_p` among those of the attention
_OUR_WAY = ("traindbg", "torch.overrides")
_CALLS = frozenset({"CALL", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_KW", "CALL_METHOD"})


def _is_between(name: str) -> bool:
    return name == _OUR_WAY[1] or name.partition(".")[0] == _OUR_WAY[0]


def _caller(function: Any) -> FrameType | None:
    """Who called it, in whatever module; the calls in between are PyTorch's way to us."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_between(str(frame.f_globals.get("__name__", ""))):
        frame = frame.f_back
    own = getattr(function, "__code__", None)
    return frame.f_back if frame is not None and frame.f_code is own else frame


def leaves_unsaid(frame: FrameType, word: str, position: int) -> bool:
    """Whether the call that a frame is at gives no argument of this name, or at this position.

    False also where that cannot be told.
    """
    # The frame may be at an inline cache behind the call.
    past = [i for i in dis.get_instructions(frame.f_code) if i.offset <= frame.f_lasti]
    if len(past) < 2:
        return False
    call, before = past[-1], past[-2]
    given = call.arg
    if call.opname not in _CALLS or given is None:
        return False
    names: tuple[Any, ...] = ()
    if call.opname.endswith("_KW"):
        if before.opname != "LOAD_CONST":
            return False
        names = _constant(frame, before)
    else:  # of Python 3.11 there is another instruction between
        named = past[-3] if before.opname == "PRECALL" and len(past) > 2 else before
        names = _constant(frame, named) if named.opname == "KW_NAMES" else ()
    return word not in names and given - len(names) <= position


def _constant(frame: FrameType, instruction: dis.Instruction) -> tuple[Any, ...]:
    # Some versions give its place among the constants.
    value = instruction.argval
    if not isinstance(value, tuple) and instruction.arg is not None:
        value = frame.f_code.co_consts[instruction.arg]
    return value if isinstance(value, tuple) else ()


def some_values(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a few, evenly over all of it."""
    with own_operations():
        flat = tensor.detach().flatten()
        return flat[:: -(-len(flat) // _VALUES)].clone()


def _rate(value: Any) -> float:
    return float(value) if isinstance(value, (int, float)) else 0.0


def share_dropped(function: Any, args: Any, kwargs: Any) -> float:
    """By a call of one of WATCHED: the share of values that it leaves out; 0 where it is off."""
    if function is _ATTENTION:
        return _rate(args[_RATE] if len(args) > _RATE else kwargs.get("dropout_p"))
    is_said = args[_POSITION] if len(args) > _POSITION else kwargs.get("training", True)
    return _rate(args[1] if len(args) > 1 else kwargs.get("p", 0.5)) if is_said is True else 0.0


class Heard(NamedTuple):
    """What was heard of an evaluation that is over."""

    lines: dict[str, int]  # of code, by the modules that they are of
    evaluations: int  # that were listened to, up to this one
    is_sampled: bool  # on purpose: what was told before does not hold
    is_told: bool  # something was heard in an earlier one


class UnsaidModes:
    """One per recording, one thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another model or training begins."""
        self.is_open = False  # a pass is looked at
        self._is_sampled = False  # on purpose: nothing is told any more
        self._evaluations = 0
        self._since = -1  # how many steps were made before the evaluation under way
        self._passes = 0  # that were looked at in it
        self._is_under_way = False
        self._is_told = False
        self._input: weakref.ref[torch.Tensor] | None = None
        self._first: tuple[Any, ...] = ()  # of the first input: its shape, and few values
        self._inputs = 0
        self._times = 0  # that it came
        self._found: dict[str, int] = {}

    def begins(self, model: torch.nn.Module, steps: int) -> bool:
        """A forward pass without gradients, after so many steps; whether it is looked at."""
        self.is_open = False
        if self._is_sampled or steps == 0 or torch.is_grad_enabled() or model.training:
            return False
        if steps != self._since:
            if self._evaluations >= _MOST_EVALUATIONS:
                return False
            self._evaluations += 1
            self._since, self._passes, self._input, self._is_under_way = steps, 0, None, True
            self._first, self._inputs, self._times = (), 0, 0
        if self._passes >= _MOST_PASSES:
            return False
        self._passes += 1
        # A part that is in training mode was set so for a reason.
        self.is_open = not any(
            module.training or isinstance(module, _LEFT_ALONE) for module in model.modules()
        )
        return self.is_open

    def given(self, tensor: torch.Tensor, steps: int, later: Later) -> None:
        """The input of a pass without gradients, also of one that is not looked at."""
        if steps != self._since or self._is_sampled:
            return
        is_again = self._input is not None and self._input() is tensor
        self._input = weakref.ref(tensor)
        if is_again:
            self._is_given_again()
        else:
            self._look_at(tensor, steps, later)

    def _is_given_again(self) -> None:
        self._is_sampled, self.is_open = True, False
        self._found.clear()

    def _look_at(self, tensor: torch.Tensor, steps: int, later: Later) -> None:
        """Whether the first input comes for the third time, in any tensor."""
        self._inputs += 1
        shape = tuple(tensor.shape)
        if self._inputs > _MOST_COMPARED or (self._first and shape != self._first[0]):
            return
        if tensor.numel() == 0 or not has_values(tensor) or capturing_graph(tensor):
            return

        def told(some: list[torch.Tensor]) -> None:
            if steps != self._since or self._is_sampled:
                return
            values = (shape, *some[0].tolist())
            self._first = self._first or values
            self._times += values == self._first
            if self._times >= _TIMES:
                self._is_given_again()

        later.ask("unsaid", [some_values(tensor)], told)

    def called(self, place: str, function: Any, args: Any, kwargs: Any) -> None:
        """Some function was called in a pass that is looked at."""
        if not self.is_open or function not in WATCHED:
            return
        is_on = share_dropped(function, args, kwargs) > 0
        frame = _caller(function) if is_on and len(self._found) < _MOST_PLACES else None
        if frame is None or str(frame.f_globals.get("__name__", "")).partition(".")[0] == "torch":
            return
        if function is _ATTENTION or leaves_unsaid(frame, "training", _POSITION):
            self._found.setdefault(place, frame.f_lineno)

    def is_over(self, steps: int) -> bool:
        """Whether another evaluation begins than the one that was looked at."""
        return self._is_under_way and steps != self._since

    def read(self) -> Heard:
        """Of the evaluation that is over."""
        found, self._found, self._is_under_way = self._found, {}, False
        is_told, self._is_told = self._is_told, self._is_told or bool(found)
        return Heard(found, self._evaluations, self._is_sampled, is_told)
