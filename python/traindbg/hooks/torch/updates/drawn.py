"""Whether the program's text says that a parameter was made of random numbers.

    self.transitions = nn.Parameter(torch.randn(tags, tags))

Few numbers do not show their distribution, and a parameter that is made so was never written to
in place. Heard is where modules are given their parameters: a copy, or what was read from a file,
was not made in that line. Kept are weak references and lines; the text is read when it is asked
for.
"""

from __future__ import annotations

import ast
import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from traindbg.hooks.torch.base.device import version_of
from traindbg.hooks.torch.base.sources import FRAMEWORKS, path_of, sources
from traindbg.hooks.torch.text.rounds_text import key_of, read

if TYPE_CHECKING:
    from types import CodeType, FrameType

_MOST_KEPT = 2048
_MOST_FRAMES = 8
_REGISTERING = nn.Module.register_parameter.__code__.co_filename
_DRAWING = ("torch.randn", "torch.rand")
_SCALING = (ast.Mult, ast.Div)
_MOVING = (ast.Add, ast.Sub)


class _Made(NamedTuple):
    parameter: weakref.ref[nn.Parameter]
    code: CodeType
    line: int


def _is_drawn(value: ast.expr) -> bool:
    """Whether an expression is random numbers, scaled and moved perhaps."""
    if isinstance(value, ast.Call):
        # With a generator of its own it may be meant to be the same each time, and to stay.
        return key_of(value.func) in _DRAWING and all(k.arg != "generator" for k in value.keywords)
    if not isinstance(value, ast.BinOp):
        return False
    left, right = value.left, value.right
    if isinstance(value.op, _SCALING):
        return _is_drawn(left) or (isinstance(value.op, ast.Mult) and _is_drawn(right))
    if isinstance(value.op, _MOVING):
        # Moved by anything but a number it may be what was learned, with noise.
        return (_is_drawn(left) and isinstance(right, ast.Constant)) or (
            _is_drawn(right) and isinstance(left, ast.Constant)
        )
    return False


def _is_put_in(name: str, tree: ast.Module) -> bool:
    """Whether the text writes to the memory of something of this name: `self.name.data`."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == "data"
        and getattr(node.value, "attr", getattr(node.value, "id", "")) == name
        for node in ast.walk(tree)
    )


def _says_drawn(made: _Made) -> bool:
    text = read(path_of(made.code.co_filename), {}, [made.code])
    function = None if text is None else text.function_of(made.code)
    if text is None or function is None:
        return False
    statements = text.statements_at(function, made.line)
    if not statements or not isinstance(statements[-1], ast.Assign):
        return False
    statement = statements[-1]
    target, value = statement.targets[0], statement.value
    if len(statement.targets) > 1 or not isinstance(target, ast.Attribute):
        return False
    if not isinstance(value, ast.Call) or not value.args:
        return False
    is_parameter = key_of(value.func).rpartition(".")[2] == "Parameter"
    return is_parameter and _is_drawn(value.args[0]) and not _is_put_in(target.attr, text.tree)


class Drawn:
    """Of the process. Its calls come from the program's threads."""

    def __init__(self) -> None:
        self._made: dict[int, _Made] = {}  # by ids of parameters
        self._left_out = 0  # since those that are gone were looked for

    def registered(self, value: Any) -> None:
        """A module is given a parameter, in the statement that is running."""
        if type(value) is not nn.Parameter:
            return
        frame: FrameType | None = sys._getframe(1)
        for _ in range(_MOST_FRAMES):
            if frame is None:
                return
            file = frame.f_code.co_filename
            if file == _REGISTERING:
                break
            frame = frame.f_back
        while frame is not None and frame.f_code.co_filename == _REGISTERING:
            frame = frame.f_back
        if frame is None or sources.owner(frame.f_code.co_filename) == FRAMEWORKS:
            return
        if len(self._made) >= _MOST_KEPT:
            self._left_out += 1
            if self._left_out % _MOST_KEPT != 1:
                return
            known = list(self._made.items())
            self._made = {key: made for key, made in known if made.parameter() is not None}
        if len(self._made) < _MOST_KEPT:
            self._made[id(value)] = _Made(weakref.ref(value), frame.f_code, frame.f_lineno)

    def says(self, parameter: torch.Tensor) -> bool:
        """Whether it is as it was drawn, by the text of where it was made. Reads that file."""
        made = self._made.get(id(parameter))
        if made is None or made.parameter() is not parameter or version_of(parameter) > 0:
            return False
        return _says_drawn(made)


drawn = Drawn()
