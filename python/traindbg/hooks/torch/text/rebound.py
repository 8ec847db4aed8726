"""Whether a model that is read from a file is lost: only a function's own name gets it.

    def restore(self, model):
        model = torch.load(self.path)  # the caller's model stays as it is
        model.eval()

That is so where a parameter of the function, which was given the trained model, is assigned what
was read, and the function does nothing with that name then but switch its mode or move it. What
the text says is asked when `torch.load` returns a model; what runs of it shows at the end, by the
trained model's weights.
"""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, NamedTuple

from traindbg.hooks.torch.base.sources import USERS, Line, line_of, path_of, sources
from traindbg.hooks.torch.text.rounds_text import read

if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_MOST_FRAMES = 32
# What may be called of a model for its own sake, without any use of it.
_NO_USE = frozenset(
    {"cpu", "cuda", "double", "eval", "float", "half", "requires_grad_", "to", "train", "zero_grad"}
)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Rebound(NamedTuple):
    """A name that is all that gets what was read."""

    name: str
    line: Line  # where it was read


def rebound(model: object) -> Rebound | None:
    """Of the user's function that reads something now: its parameter that is `model`, and is lost.

    None where the text does not say so, or cannot be read.
    """
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        if sources.owner(frame.f_code.co_filename) == USERS:
            return _rebound_in(frame, model)
        frame = frame.f_back
    return None


def _rebound_in(frame: FrameType, model: object) -> Rebound | None:
    code, number = frame.f_code, frame.f_lineno
    text = read(path_of(code.co_filename), {}, [code])
    function = None if text is None else text.function_of(code)
    if not isinstance(function, _Function):
        return None
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    names = [name for name in given if is_lost(function, number, name)]
    # Asked for last: older Pythons keep what the frame held until it ends.
    values: dict[str, Any] = frame.f_locals if names else {}
    for name in names:
        if values.get(name) is model:
            return Rebound(name, line_of(code, number))
    return None


def is_lost(function: _Function, number: int, name: str) -> bool:
    """Whether what a call in line `number` returns goes to the parameter `name`, and no further."""
    read = _assigned(function, lambda each: each.lineno <= number <= (each.end_lineno or 0))
    if read is None or not _is_load(read.value):
        return False
    target = _target(read)
    assigned: ast.Assign | None = read
    if target != name:
        # By a name of its own first.
        assigned = _assigned(
            function,
            lambda each: (
                each.lineno > number
                and _target(each) == name
                and isinstance(each.value, ast.Name)
                and each.value.id == target
            ),
        )
        if assigned is not None and _loads_beside(function, target, assigned) > 1:
            return False
    return assigned is not None and not _is_used(function, assigned, name)


def _loads_beside(function: _Function, name: str, assigned: ast.Assign) -> int:
    """How often a name is used where an assignment runs, but for what is printed."""
    left_out: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print":
            left_out.update(id(inner) for inner in ast.walk(node))
        if isinstance(node, ast.If):
            for branch, other in ((node.body, node.orelse), (node.orelse, node.body)):
                if any(each is assigned for each in _below(branch)):
                    left_out.update(map(id, _below(other)))
    return sum(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in ast.walk(function)
        if id(node) not in left_out
    )


def _below(statements: list[ast.stmt]) -> list[ast.AST]:
    return [node for statement in statements for node in ast.walk(statement)]


def _is_load(value: ast.expr) -> bool:
    """`torch.load(...)` itself, or moved: what else is given it may keep it."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        if value.func.attr == "load":
            return True
        if value.func.attr not in _NO_USE:
            return False
        value = value.func.value
    return isinstance(value, ast.Call) and getattr(value.func, "id", "") == "load"


def _assigned(function: _Function, is_it: Any) -> ast.Assign | None:
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and _target(node) and is_it(node)
    ]
    return found[0] if len(found) == 1 else None


def _target(node: ast.Assign) -> str:
    """The one name that is assigned; empty where it is something else."""
    target = node.targets[0]
    return target.id if len(node.targets) == 1 and isinstance(target, ast.Name) else ""


def _is_used(function: _Function, assigned: ast.Assign, name: str) -> bool:
    """Whether the function may use what the name is given there."""
    after = assigned.end_lineno or assigned.lineno, assigned.end_col_offset or 0
    idle: set[int] = set()
    for node in ast.walk(function):
        # What is defined in it may use the name whenever it is called.
        if node is not function and isinstance(node, _INNER):
            return True
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and _lies_in(assigned, node):
            after = min(after, (node.lineno, node.col_offset))
        if isinstance(node, ast.Expr) and _is_idle(node.value, name):
            idle.update(id(each) for each in ast.walk(node))
    return any(
        isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Load)
        and (node.lineno, node.col_offset) >= after
        and id(node) not in idle
        for node in ast.walk(function)
    )


def _lies_in(inner: ast.Assign, outer: ast.For | ast.AsyncFor | ast.While) -> bool:
    return outer.lineno <= inner.lineno <= (outer.end_lineno or outer.lineno)


def _is_idle(value: ast.expr, name: str) -> bool:
    """`name.eval()` and the like, whose result nobody takes."""
    return (
        isinstance(value, ast.Call)
        and isinstance(value.func, ast.Attribute)
        and value.func.attr in _NO_USE
        and isinstance(value.func.value, ast.Name)
        and value.func.value.id == name
    )
