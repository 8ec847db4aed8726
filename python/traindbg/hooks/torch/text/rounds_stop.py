"""Whether a program's text leaves a loop by an early stopping, and what that waits for.

An early stopping counts how often a value was no better than the best one, or how long that is
ago, and leaves the loop by the count:

    if value < best:
        best, bad = value, 0
    else:
        bad += 1
        if bad >= patience:
            break

The test may stand in a class, in a flag or in a variable of its own. A limit of time or of steps, a
target that is reached, a loss that is not finite and a trial of few batches are none: of a loop
that may be left by one of these nothing can be said. Nor of one whose first best value is computed
or loaded: it may be one that is to be beaten.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch.text.rounds_better import FLIPPED, better
from traindbg.hooks.torch.text.rounds_text import (
    FUNCTIONS,
    LOOPS,
    Scope,
    Text,
    constructor_of,
    key_of,
    number_of,
    own_nodes,
    pairs,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINKS = 6
_LEAVING = ("exit", "quit", "_exit", "abort")
_RAISED = ("SystemExit", "KeyboardInterrupt", "Exit", "Abort")
_LETTING_THROUGH = ("no_grad", "enable_grad", "inference_mode", "autocast", "open", "watch")
_BARS = ("tqdm", "trange", "Progress", "alive_bar")


class Stop(NamedTuple):
    """An early stopping."""

    patience: int  # so many values that are no better end the loop; 0: not known
    sense: int  # -1: lower is better, 1: higher is better, 0: not known
    gain: float  # by which a value must be better at least (min_delta); -1: not known
    kind: int  # of the values, by what the text calls them


def exits_of(loop: Any) -> list[ast.stmt]:
    """Where a loop is left: its own `break`s, and `return`s."""
    found: list[ast.stmt] = []

    def look(node: ast.AST, is_own: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
                continue
            if isinstance(child, ast.Return) or (is_own and isinstance(child, ast.Break)):
                found.append(child)
            look(child, is_own and not isinstance(child, LOOPS))

    for statement in loop.body:
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue
        if isinstance(statement, (ast.Return, ast.Break)):
            found.append(statement)
        look(statement, not isinstance(statement, LOOPS))
    return found


def early_stopping(loop: Any, scope: Scope) -> Stop | None:
    """By which a loop is left, if by nothing else. None: it is not, or that cannot be told."""
    stops: set[Stop] = set()
    if _may_be_left_otherwise(loop, scope.text):
        return None
    for way in exits_of(loop):
        test = _test_of(way, loop, scope.text)
        if test is None:
            return None
        stop = _stop_in(test, scope, 0)
        if stop is None:
            return None
        stops.add(stop)
    return stops.pop() if len(stops) == 1 else None


def _may_be_left_otherwise(loop: Any, text: Text) -> bool:
    """By the end of the process, or by an exception that is caught outside."""
    if any(
        isinstance(node, ast.Call) and key_of(node.func).rpartition(".")[2] in _LEAVING
        for node in ast.walk(loop)
    ):
        return True
    return any(catches(node) for node in text.above(loop))


def ends_process(tree: ast.Module) -> bool:
    """Whether a program's text ends the process otherwise than by `sys.exit`, which is heard."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            key = key_of(node.func)
            if key != "sys.exit" and key.rpartition(".")[2] in _LEAVING:
                return True
        elif isinstance(node, ast.Raise):
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if key_of(raised).rpartition(".")[2] in _RAISED:
                return True
    return False


def catches(node: ast.AST) -> bool:
    """Whether a statement may catch exceptions that are raised inside of it."""
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return not all(_lets_through(item.context_expr) for item in node.items)
    leaves = (ast.Return, ast.Break, ast.Continue)
    last = (each for part in getattr(node, "finalbody", []) for each in ast.walk(part))
    return bool(getattr(node, "handlers", [])) or any(isinstance(each, leaves) for each in last)


def _lets_through(context: ast.expr) -> bool:
    key = key_of(context.func if isinstance(context, ast.Call) else context)
    name = key.rpartition(".")[2]
    return key.startswith("torch.") or name in _LETTING_THROUGH or name in _BARS


def _test_of(statement: ast.AST, area: ast.AST, text: Text) -> ast.expr | None:
    """What the innermost `if` asks in whose body a statement lies."""
    below = statement
    for node in text.above(statement):
        if node is area or isinstance(node, (*LOOPS, *FUNCTIONS, ast.ExceptHandler)):
            return None
        if isinstance(node, ast.If):
            return node.test if below in node.body else None
        below = node
    return None


def _stop_in(test: ast.expr, scope: Scope, links: int) -> Stop | None:
    """The early stopping that a test asks."""
    if links > _MOST_LINKS:
        return None
    if isinstance(test, ast.BoolOp):
        found = [_stop_in(value, scope, links + 1) for value in test.values]
        known = [stop for stop in found if stop is not None]
        # One of several reasons: it is not known which.
        is_all = len(known) == len(found) or isinstance(test.op, ast.And)
        return known[0] if known and is_all else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _of_comparison(test, scope)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _of_counter(key_of(test.operand), None, ast.Eq, scope)
    if isinstance(test, ast.Call):
        return _of_call(test, scope, links)
    if isinstance(test, (ast.Name, ast.Attribute)):
        return _of_flag(test, scope, links)
    return None


def _area_of(key: str, scope: Scope) -> Any:
    """Where a variable may be given values: its function or module, or a class."""
    owner = scope.text.class_of(scope.node)
    if "." in key:
        return owner if key.partition(".")[0] == scope.text.self_of(scope.node) else None
    return scope.node


def _of_comparison(test: ast.Compare, scope: Scope) -> Stop | None:
    left, right, op = test.left, test.comparators[0], type(test.ops[0])
    if op not in FLIPPED:
        return None
    if op in (ast.Lt, ast.LtE):
        left, right, op = right, left, FLIPPED[op]
        swapped = True
    else:
        swapped = False
    if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Sub):
        return _of_distance(left, right, op, scope)
    if swapped and isinstance(test.left, (ast.Name, ast.Attribute)):  # `left_over <= 0`
        counted = _of_counter(key_of(test.left), None, op, scope)
        if counted is not None and isinstance(test.comparators[0], ast.Constant):
            return counted
    return _of_counter(key_of(left), right, op, scope)


def _limit_of(node: ast.expr | None, op: type[ast.cmpop], scope: Scope) -> int:
    number = None if node is None else number_of(node, scope)
    if number is None:
        return 0
    return max(0, number + (op is ast.Gt))


def _of_counter(key: str, limit: ast.expr | None, op: type[ast.cmpop], scope: Scope) -> Stop | None:
    """Of a count that an `if` about a better value changes by one."""
    area = _area_of(key, scope)
    if not key or area is None:
        return None
    stops: set[Stop] = set()
    for statement, is_up in _steps_of(key, area):
        found = better(statement, area, scope)
        if found is not None:
            patience = _limit_of(limit, op, scope) if is_up else 0
            stops.add(Stop(patience, *found))
    return stops.pop() if len(stops) == 1 else None


def _steps_of(key: str, area: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Where a count goes up by one, and where down."""
    nodes = ast.walk(area) if isinstance(area, ast.ClassDef) else own_nodes(area)
    for node in nodes:
        if isinstance(node, ast.AugAssign) and key_of(node.target) == key:
            is_one = isinstance(node.value, ast.Constant) and node.value.value == 1
            if is_one and isinstance(node.op, (ast.Add, ast.Sub)):
                yield node, isinstance(node.op, ast.Add)
        for target, value in pairs(node):
            if key_of(target) != key:
                continue
            for part in ast.walk(value):
                is_sum = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Add)
                if is_sum and key_of(getattr(part, "left", None)) == key:
                    yield part, True


def _of_distance(
    left: ast.BinOp, limit: ast.expr, op: type[ast.cmpop], scope: Scope
) -> Stop | None:
    """Of how long the best value is ago: `epoch - best_epoch >= patience`."""
    key = key_of(left.right)
    area = _area_of(key, scope)
    if not key or area is None:
        return None
    nodes = ast.walk(area) if isinstance(area, ast.ClassDef) else own_nodes(area)
    for node in nodes:
        if any(key_of(target) == key for target, _ in pairs(node)):
            found = better(node, area, scope, is_worse=False)
            if found is not None:
                return Stop(_limit_of(limit, op, scope), *found)
    return None


def _of_call(test: ast.Call, scope: Scope, links: int) -> Stop | None:
    """Of a function or an object that is asked."""
    text = scope.text
    if isinstance(test.func, ast.Name):
        functions = [
            node
            for node in ast.walk(text.tree)
            if isinstance(node, FUNCTIONS) and node.name == test.func.id
        ]
        if functions:
            inner = Scope(text, functions[0], scope, test)
            return _of_returns(inner, links) if len(functions) == 1 else None
        return _of_method(test, test.func, "__call__", scope, links)
    if isinstance(test.func, ast.Attribute):
        return _of_method(test, test.func.value, test.func.attr, scope, links)
    return None


def _of_method(test: ast.Call, thing: ast.expr, name: str, scope: Scope, links: int) -> Stop | None:
    own = scope.text.class_of(scope.node)
    if own is not None and key_of(thing) == scope.text.self_of(scope.node):
        found: tuple[Text, ast.ClassDef] | None = (scope.text, own)
    else:
        found = scope.text.class_of_value(thing, scope)
    if found is None:
        return None
    text, owner = found
    methods = [each for each in owner.body if isinstance(each, FUNCTIONS) and each.name == name]
    if len(methods) != 1:
        return None
    return _of_returns(Scope(text, methods[0], scope, test), links)


def _of_returns(scope: Scope, links: int) -> Stop | None:
    """Of what a function answers: each answer but `False` is an early stopping's."""
    stops: list[Stop | None] = []
    for node in own_nodes(scope.node):
        if not isinstance(node, ast.Return) or node.value is None:
            continue
        value: ast.expr | None = node.value
        if isinstance(value, ast.Constant):
            if not value.value:
                continue
            value = _test_of(node, scope.node, scope.text)
        stops.append(None if value is None else _stop_in(value, scope, links + 1))
    return stops[0] if len(set(stops)) == 1 else None


def _of_flag(test: ast.Name | ast.Attribute, scope: Scope, links: int) -> Stop | None:
    """Of a variable that is set where the test is made."""
    key, text, where = key_of(test), scope.text, scope
    area = _area_of(key, scope)
    if isinstance(test, ast.Attribute) and area is None:
        found = text.class_of_value(test.value, scope)
        if found is None:
            return None
        text, area = found
        begins = constructor_of(area, Scope(text, area.body[0], scope))
        where = Scope(text, area.body[0], scope) if begins is None else begins
        key = f"{text.self_of(where.node)}.{test.attr}"
    if not key or area is None:
        return None
    nodes = ast.walk(area) if isinstance(area, ast.ClassDef) else own_nodes(area)
    stops: list[Stop | None] = []
    for node in nodes:
        for target, value in pairs(node):
            if key_of(target) != key:
                continue
            inner = scope
            if area is not scope.node:
                method = text.scope_of(node)
                inner = where._replace(node=method, call=None)
                if where is not scope:
                    call = _call_of(test.value, method, scope)  # type: ignore[union-attr]
                    inner = inner._replace(caller=scope, call=call)
            asked: ast.expr | None = value
            if isinstance(value, ast.Constant):
                if not value.value:
                    continue
                asked = _test_of(node, area, text)
            stops.append(None if asked is None else _stop_in(asked, inner, links + 1))
    return stops[0] if len(set(stops)) == 1 else None


def _call_of(thing: ast.expr, method: Any, scope: Scope) -> ast.Call | None:
    """The only call of a method of an object where it is asked, perhaps as a function."""
    key, name = key_of(thing), getattr(method, "name", "")
    wanted = key if name == "__call__" else f"{key}.{name}"
    found = [
        node
        for node in own_nodes(scope.node)
        if isinstance(node, ast.Call) and key_of(node.func) == wanted
    ]
    return found[0] if len(found) == 1 else None
