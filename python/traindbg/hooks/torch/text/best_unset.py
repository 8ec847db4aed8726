"""Whether the best value so far, for whose sake weights are kept, is never set to a better one.

    def save_if_better(model, loss, best):
        if loss < best:
            best = loss  # the function's own name: what the caller compares with stays infinite
            torch.save(model.state_dict(), path)

    for epoch in range(20):
        ...
        save_if_better(model, loss, best)

Each evaluation is better than infinity, so that the last one is kept. That is so where, by the
text, weights are taken below an `if` that compares a value with a variable, and nothing in the loop
sets that variable: not the function that compares, nor those who call it. The values that weights
were kept for show it: some are worse than one before.

Where all weights are kept that are better than some limit, each under a name of its own or in a
list, no best value is meant.

The text is read once for each line that takes weights. Of frames nothing is kept but their code and
those values.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch.base.sources import USERS, Line, line_of, path_of, sources
from traindbg.hooks.torch.text.rounds_text import (
    FUNCTIONS,
    LOOPS,
    Scope,
    Text,
    argument_of,
    assigned,
    read,
    taken,
)

if TYPE_CHECKING:
    from types import CodeType, FrameType

_MOST_FRAMES = 32
_MOST_USERS = 3  # frames of the user's, from the one that takes the weights outwards
_MOST_PLACES = 12
_FEWEST = 3  # times that weights were kept
_BEST = re.compile("best|lowest|highest|smallest", re.IGNORECASE)
_APPENDING = ("append", "appendleft", "extend", "heappush", "insert", "push")
_LOWER = (ast.Lt, ast.LtE)
_HIGHER = (ast.Gt, ast.GtE)


class _Compared(NamedTuple):
    """A variable that is compared with the best value."""

    value: str
    is_lower: bool  # lower ones are better


class Unset(NamedTuple):
    """Weights were kept so many times, some of them for a worse value than before."""

    line: Line
    times: int
    worse: int


class _Kept:
    """For which values weights were kept, at one place."""

    def __init__(self, compared: _Compared, line: Line) -> None:
        self.compared = compared
        self.line = line
        self.times = self.worse = 0
        self._best = math.inf

    def note(self, value: Any) -> None:
        """One more. Whole numbers count rounds, as those after which weights are kept."""
        if not isinstance(value, float) or not math.isfinite(value):
            return
        size = value if self.compared.is_lower else -value
        self.times += 1
        self.worse += size > self._best
        self._best = min(self._best, size)


class BestValues:
    """One per recording."""

    def __init__(self) -> None:
        self._places: dict[tuple[CodeType, int], _Kept | None] = {}

    def clear(self) -> None:
        """Forgets all."""
        self._places.clear()

    def kept(self) -> None:
        """The running code of the user takes the weights of a model that is trained."""
        frame: FrameType | None = sys._getframe(1)
        users = 0
        for _ in range(_MOST_FRAMES):
            if frame is None or users >= _MOST_USERS:
                return
            if sources.owner(frame.f_code.co_filename) == USERS:
                users += 1
                at = frame.f_code, frame.f_lineno
                if at not in self._places:
                    if len(self._places) >= _MOST_PLACES:
                        return
                    self._places[at] = _place_of(frame)
                place = self._places[at]
                if place is not None:
                    # Asked for here alone: older Pythons keep what the frame held until it ends.
                    place.note(frame.f_locals.get(place.compared.value))
                    return
            frame = frame.f_back

    def unset(self) -> Unset | None:
        """The first place of which that is known."""
        for place in self._places.values():
            if place is not None and place.times >= _FEWEST and place.worse > 0:
                return Unset(place.line, place.times, place.worse)
        return None


def _place_of(frame: FrameType) -> _Kept | None:
    code = frame.f_code
    text = read(path_of(code.co_filename), frame.f_globals, [code])
    scope = None if text is None else text.function_of(code)
    if text is None or scope is None:
        return None
    found = compared(text, scope, frame.f_lineno)
    return None if found is None else _Kept(found[0], line_of(code, found[1]))


def compared(text: Text, scope: Any, line: int) -> tuple[_Compared, int] | None:
    """What is compared, and where, for a statement of a function, or of the module, to run.

    None where the best value may be set, or nothing is compared.
    """
    path = text.statements_at(scope, line)
    for above, below in reversed(list(itertools.pairwise(path))):
        if isinstance(above, LOOPS):
            return None
        if not isinstance(above, ast.If) or below not in above.body:
            continue
        is_and = isinstance(above.test, ast.BoolOp) and isinstance(above.test.op, ast.And)
        tests = above.test.values if is_and else [above.test]  # type: ignore[attr-defined]
        found = [each for test in tests for each in _unset_in(test, text, scope)]
        if found:
            is_best = len(found) == 1 and not _keeps_each(path[-1], text, scope)
            return (found[0], above.lineno) if is_best else None
    return None


def _keeps_each(statement: ast.stmt, text: Text, scope: Any) -> bool:
    """Whether a statement that takes weights leaves those that were taken before as they are.

    It does where something is appended, or what they are kept under has a part that a loop sets.
    """
    if isinstance(statement, LOOPS):
        return False  # over the parts of one state
    nodes = list(ast.walk(statement))
    if isinstance(statement, ast.AugAssign) or any(
        isinstance(node, ast.Call) and _called(node.func) in _APPENDING for node in nodes
    ):
        return True
    area = text.tree if not isinstance(scope, FUNCTIONS) else scope
    # A name may have been made before.
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    made = [value for name in sorted(names) for value in assigned(area, name)]
    named = [part for each in (*nodes, *made) for part in _parts_of(each)]
    return any(_is_set_in_loop(part, text, scope) for part in named)


def _parts_of(value: ast.AST) -> list[ast.expr]:
    """What a text is made of, or a place in a container is told by."""
    found: list[ast.expr] = []
    for node in ast.walk(value):
        if isinstance(node, ast.JoinedStr):
            found += [each.value for each in node.values if isinstance(each, ast.FormattedValue)]
        elif isinstance(node, ast.BinOp) and _has_text(node):
            found += [node.left, node.right]
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            found.append(node.slice)
        elif isinstance(node, ast.Call) and _called(node.func) in ("format", "str"):
            found += [*node.args, *(each.value for each in node.keywords)]
    return found


def _has_text(node: ast.AST) -> bool:
    return any(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(node))


def _is_set_in_loop(part: ast.expr, text: Text, scope: Any, calls: int = 0) -> bool:
    """Whether a part of a name is another one each time: as a loop's variable is, or a count."""
    for node in ast.walk(part):
        if isinstance(node, ast.Attribute) and _is_counted(node.attr, text):
            return True
        if not isinstance(node, ast.Name):
            continue
        is_given = isinstance(scope, FUNCTIONS) and _is_parameter(node.id, scope)
        if is_given and _is_given_another(node.id, text, scope, calls + 1):
            return True
        where = scope if text.bindings(node.id, scope) else text.tree
        if any(
            isinstance(above, LOOPS)
            for each in _bindings(node.id, text, where)
            for above in _within(text, each)
        ):
            return True
    return False


def _is_counted(attribute: str, text: Text) -> bool:
    """Whether the program adds to an attribute, or sets it in a loop."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == attribute
        and not isinstance(node.ctx, ast.Load)
        and any(isinstance(above, (ast.AugAssign, *LOOPS)) for above in _within(text, node))
        for node in ast.walk(text.tree)
    )


def _is_given_another(name: str, text: Text, function: Any, calls: int) -> bool:
    """Whether a function is given another value for a parameter each time, by one of its calls."""
    for call in ast.walk(text.tree):
        if not isinstance(call, ast.Call) or _called(call.func) != function.name:
            continue
        caller = text.scope_of(call)
        given = argument_of(name, Scope(text, function, Scope(text, caller), call))
        if given is None or calls >= _MOST_USERS:
            continue
        if _is_set_in_loop(given[0], text, caller, calls):
            return True
    return False


def _bindings(name: str, text: Text, scope: Any) -> list[ast.AST]:
    """Where a scope sets a name: not where it has all names of a module that has no such name."""
    return [each for each in text.bindings(name, scope) if not _is_of_others(each, name)]


def _is_of_others(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.ImportFrom) or node.level or node.names[0].name != "*":
        return False
    module = sys.modules.get(node.module or "")
    return type(module) is ModuleType and name not in vars(module)


def _unset_in(test: ast.expr, text: Text, scope: Any) -> list[_Compared]:
    """Values that a test compares with what is never set."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return []
    if not isinstance(test.ops[0], (*_LOWER, *_HIGHER)):
        return []
    is_lower = isinstance(test.ops[0], _LOWER)
    left, right = test.left, test.comparators[0]
    return [
        _Compared(value.id, lower)
        for value, best, lower in ((left, right, is_lower), (right, left, not is_lower))
        if isinstance(value, ast.Name) and _is_never_set(_base_of(best), text, scope, test)
    ]


def _base_of(value: ast.expr) -> str:
    """Of `best` and `best - least`: the name."""
    value = value.left if isinstance(value, ast.BinOp) else value
    return value.id if isinstance(value, ast.Name) else ""


def _is_never_set(name: str, text: Text, scope: Any, test: ast.expr) -> bool:
    """Whether a variable stays what it was when the loop began in which it is compared."""
    if any(
        isinstance(node, (ast.Attribute, ast.Subscript)) and _called(node.value) == name
        for node in ast.walk(text.tree)
    ):
        return False  # a tensor, say, which may be changed in its place
    if not name or not isinstance(scope, FUNCTIONS) or not _is_parameter(name, scope):
        return bool(name) and _stays(name, text, test)
    is_method = text.class_of(scope) is not None
    calls = [
        node
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Call) and _called(node.func) == scope.name
    ]
    uses = [node for node in ast.walk(text.tree) if _called(node) == scope.name]
    if len(uses) != len(calls) or len(_bindings(scope.name, text, text.tree)) != (not is_method):
        return False  # it may be called elsewhere, too, or be another function
    given = []
    for call in calls:
        caller = Scope(text, text.scope_of(call))
        if taken([call], caller):
            argument = argument_of(name, Scope(text, scope, caller, call))
            given.append((call, None if argument is None else argument[0]))
    return bool(given) and all(
        isinstance(argument, ast.Name) and _stays(argument.id, text, call)
        for call, argument in given
    )


def _called(node: ast.AST) -> str:
    """The last part of a name that is read."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else ""


def _is_parameter(name: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    own = function.args
    return name in [each.arg for each in (*own.posonlyargs, *own.args, *own.kwonlyargs)]


def _stays(name: str, text: Text, node: ast.expr) -> bool:
    """Whether a variable, a best value by what it is or is called, is set before a loop alone."""
    own = text.scope_of(node)
    where = own if _bindings(name, text, own) else text.tree
    if text.is_changed_elsewhere(name):
        return False
    found = _bindings(name, text, where)
    names = [each for each in found if isinstance(each, ast.Name)]
    if len(names) != len(found):
        return False
    reached = taken([*names], Scope(text, where))
    if len(reached) != 1:
        return False
    loop = next((each for each in _within(text, node) if isinstance(each, LOOPS)), None)
    if where is own and (loop is None or reached[0] in ast.walk(loop)):
        return False
    return _BEST.search(name) is not None or _is_infinite(text, reached[0])


def _within(text: Text, node: ast.AST) -> list[ast.AST]:
    """What a node lies in, inside of its function."""
    found: list[ast.AST] = []
    for each in text.above(node):
        if isinstance(each, FUNCTIONS):
            break
        found.append(each)
    return found


def _is_infinite(text: Text, name: ast.expr) -> bool:
    statement = next((each for each in text.above(name) if isinstance(each, ast.stmt)), None)
    value = getattr(statement, "value", None)
    return value is not None and "inf" in ast.unparse(value)
