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
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch_rounds_text import (
    FUNCTIONS,
    LOOPS,
    Scope,
    Text,
    argument_of,
    assigned,
    chosen,
    constructor_of,
    decimal_of,
    key_of,
    number_of,
    own_nodes,
    pairs,
    taken,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINKS = 6
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
}
_LEAVING = ("exit", "quit", "_exit", "abort")
_RAISED = ("SystemExit", "KeyboardInterrupt", "Exit", "Abort")
_LETTING_THROUGH = ("no_grad", "enable_grad", "inference_mode", "autocast", "open", "watch")
_BARS = ("tqdm", "trange", "Progress", "alive_bar")
_OF_STATES = ("__dict__", "vars", "setattr")
_LOSSES = ("cross_entropy", "binary_cross_entropy", "criterion")
_OF_LOSSES = {"loss", "losses"}  # words of a name
_NOT_OF_LOSSES = {"neg", "negative", "minus", "no", "gain", "drop", "delta", "improvement"}
_OF_TENSORS = ("item", "mean", "detach", "cpu", "float")
_OF_NUMBERS = ("mean", "float", "sum", "fmean")
_LIMITS = ("inf", "infty", "maxsize", "max")


# What a value is.
UNKNOWN, LOSS, TRAINED_LOSS = 0, 1, 2  # `TRAINED_LOSS`: on which `backward()` is called


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
    if op not in _FLIPPED:
        return None
    if op in (ast.Lt, ast.LtE):
        left, right, op = right, left, _FLIPPED[op]
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
        found = _better(statement, area, scope)
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
            found = _better(node, area, scope, is_worse=False)
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


# What "better" means.


def _better(
    statement: ast.AST, area: Any, scope: Scope, is_worse: bool = True
) -> tuple[int, float, int] | None:
    """The sense of an `if` in one of whose branches a statement deals with a value.

    And the least gain that counts, and what the value is. `is_worse`: the value is no better there,
    and is counted. None: nothing asks for a better value.
    """
    below = statement
    for node in scope.text.above(statement):
        for other in _left_before(below, node):
            found = _comparison_in(other.test, not is_worse, area, scope, 0)
            if found is not None:
                return found
        if node is area:
            break
        if isinstance(node, (ast.If, ast.IfExp)) and below is not node.test:
            body = node.body if isinstance(node.body, list) else [node.body]
            found = _comparison_in(node.test, (below in body) == is_worse, area, scope, 0)
            if found is not None:
                return found
        below = node
    return None


def _left_before(statement: ast.AST, parent: ast.AST) -> list[ast.If]:
    """The `if`s before a statement that end in a `return` or `continue`."""
    body = getattr(parent, "body", [])
    if not isinstance(body, list) or statement not in body or isinstance(parent, ast.ClassDef):
        return []
    return [
        node
        for node in body[: body.index(statement)]
        if isinstance(node, ast.If)
        and not node.orelse
        and isinstance(node.body[-1], (ast.Return, ast.Continue))
    ]


def _comparison_in(
    test: ast.expr, is_worse: bool, area: Any, scope: Scope, links: int
) -> tuple[int, float, int] | None:
    """`is_worse`: the test is true where a value is not better."""
    if links > _MOST_LINKS:
        return None
    if isinstance(test, ast.BoolOp):
        found = [_comparison_in(each, is_worse, area, scope, links + 1) for each in test.values]
        known = [each for each in found if each is not None]
        return known[0] if known else None
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _comparison_in(test.operand, not is_worse, area, scope, links + 1)
    if isinstance(test, ast.IfExp):
        one = chosen(test, scope)
        return None if one is None else _comparison_in(one, is_worse, area, scope, links + 1)
    if isinstance(test, ast.Name):
        values = taken(assigned(scope.text.scope_of(test), test.id), scope)
        if len(values) != 1:
            return None
        return _comparison_in(values[0], is_worse, area, scope, links + 1)
    if isinstance(test, ast.Call):
        given = {key for each in test.args for key in _keys_in(each)}
        return (0, -1.0, UNKNOWN) if _is_kept(given, set(), area, scope) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    left, right, op = test.left, test.comparators[0], type(test.ops[0])
    if op not in _FLIPPED or op is ast.Eq:
        return None
    # `best - value > least`: as `value < best - least`.
    least: ast.expr | None = None
    gained = left
    if isinstance(gained, ast.BinOp) and isinstance(gained.op, ast.Sub):
        least, left, right, op = right, gained.right, gained.left, _FLIPPED[op]
    if not _is_kept(set(_keys_in(left)), set(_keys_in(right)), area, scope):
        if not _is_kept(set(_keys_in(right)), set(_keys_in(left)), area, scope):
            return None
        left, right, op = right, left, _FLIPPED[op]
    sense = -1 if op in (ast.Lt, ast.LtE) else 1
    sense = -sense if is_worse else sense
    if least is None:
        left, right, least = _without_gain(left, right, sense)
    gain = 0.0 if least is None else decimal_of(least, scope)
    if not key_of(right) or not key_of(_plain_of(left)) or gain is None or gain < 0:
        gain = -1.0
    kind, sign = _kind_of(left, scope)
    return sense * (sign if kind else _sign_of(left, scope)), gain, kind


def _without_gain(
    value: ast.expr, best: ast.expr, sense: int
) -> tuple[ast.expr, ast.expr, ast.expr | None]:
    """A value, the best one, and what is taken off one of them to ask for more."""
    harder = ast.Add if sense > 0 else ast.Sub
    easier = ast.Sub if sense > 0 else ast.Add
    if isinstance(best, ast.BinOp) and isinstance(best.op, harder):
        return value, best.left, best.right
    if isinstance(value, ast.BinOp) and isinstance(value.op, easier):
        return value.left, best, value.right
    return value, best, None


def _plain_of(node: ast.expr) -> ast.expr:
    """Without a sign before it, and without `.item()` behind it."""
    if isinstance(node, ast.UnaryOp):
        return node.operand
    is_item = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if is_item and not node.args and node.func.attr == "item":  # type: ignore[attr-defined]
        value: ast.expr = node.func.value  # type: ignore[attr-defined]
        return value
    return node


def _kind_of(value: ast.expr | None, scope: Scope, links: int = 0) -> tuple[int, int]:
    """What a value is by what the text calls it, and the sign with which it is that."""
    nothing = UNKNOWN, 0
    if value is None or links > _MOST_LINKS:
        return nothing
    if _form_of(value) in _forms_of_losses(scope.text):
        return LOSS, 1
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        kind, sign = _kind_of(value.operand, scope, links + 1)
        return kind, -sign
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        return _kind_of(value.left, scope, links + 1)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        for factor, other in ((value.left, value.right), (value.right, value.left)):
            number = number_of(factor, scope)
            if number:
                kind, sign = _kind_of(other, scope, links + 1)
                return kind, sign if number > 0 else -sign
        return nothing
    if isinstance(value, ast.IfExp):
        return _kind_of(chosen(value, scope), scope, links + 1)
    if isinstance(value, ast.Call):
        inner = value.func.value if isinstance(value.func, ast.Attribute) else None
        name = getattr(value.func, "attr", getattr(value.func, "id", ""))
        if inner is not None and not value.args and name in _OF_TENSORS:
            return _kind_of(inner, scope, links + 1)
        if len(value.args) == 1 and name in _OF_NUMBERS:
            return _kind_of(value.args[0], scope, links + 1)
        return (LOSS, 1) if _is_called_loss(name) or name in _LOSSES else nothing
    if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Constant):
        word = value.slice.value
        return (LOSS, 1) if isinstance(word, str) and _is_called_loss(word) else nothing
    if isinstance(value, ast.Name):
        return _kind_of_variable(value, scope, links)
    is_loss = isinstance(value, ast.Attribute) and _is_called_loss(value.attr)
    return (LOSS, 1) if is_loss else nothing


def _kind_of_variable(value: ast.Name, scope: Scope, links: int) -> tuple[int, int]:
    text, name = scope.text, value.id
    changed = _changed_in_place(name, scope.node, scope)
    if text.scope_of(value) is not scope.node or changed == 0 or _sign_of(value, scope) == 0:
        return UNKNOWN, 0
    in_place = [n.target for n in own_nodes(scope.node) if isinstance(n, ast.AugAssign)]
    found = [node for node in text.bindings(name, scope.node) if node not in in_place]
    values = assigned(scope.node, name)
    if len(found) == 1 and isinstance(found[0], ast.arg):
        given = argument_of(name, scope)
        kind, sign = (UNKNOWN, 0) if given is None else _kind_of(given[0], given[1], links + 1)
        return kind, sign * changed
    if (
        changed > 0
        and len(found) == 1
        and any(
            isinstance(node, ast.Call) and key_of(node.func) == f"{name}.backward"
            for node in own_nodes(scope.node)
        )
    ):
        return TRAINED_LOSS, 1
    if len(found) == len(values) > 0:
        kinds = {_kind_of(each, scope, links + 1) for each in values}
        kind, sign = kinds.pop()
        if kind and not kinds:
            return kind, sign * changed
    is_plain = _sign_of(value, scope) == 1 and not any(isinstance(v, ast.UnaryOp) for v in values)
    return (LOSS, 1) if _is_called_loss(name) and is_plain else (UNKNOWN, 0)


def _form_of(value: ast.AST) -> str:
    """How a value is computed, of whatever it is: "listwise().mean()". Empty: not known."""
    if isinstance(value, ast.BinOp):
        parts = [_form_of(each) for each in (value.left, value.right)]
        return f"({parts[0]} {type(value.op).__name__} {parts[1]})" if all(parts) else ""
    if isinstance(value, ast.Constant):
        return repr(value.value)
    if not isinstance(value, ast.Call):
        return ""
    if not isinstance(value.func, ast.Attribute) or key_of(value.func):
        name = key_of(value.func)
        return f"{name}()" if name else ""
    inner, name = _form_of(value.func.value), value.func.attr
    if not inner or name in ("item", "detach", "cpu"):
        return inner
    return f"{inner}.{name}({', '.join(map(ast.unparse, value.args))})"


def _forms_of_losses(text: Text) -> set[str]:
    """How the values are computed on which the text calls `backward()`, of calls of its own."""
    forms: set[str] = set()
    own = {node.name for node in ast.walk(text.tree) if isinstance(node, FUNCTIONS)}
    for node in ast.walk(text.tree):
        is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if not is_call or node.func.attr != "backward":  # type: ignore[attr-defined]
            continue
        root: ast.expr = node.func.value  # type: ignore[attr-defined]
        values = assigned(text.scope_of(node), key_of(root)) if key_of(root) else [root]
        if len(values) == 1:
            forms.add(_form_of(values[0]))
    return {form for form in forms if not own.isdisjoint(re.findall(r"\w+", form))}


def _is_called_loss(name: str) -> bool:
    words = name.lower().split("_")
    return not _OF_LOSSES.isdisjoint(words) and _NOT_OF_LOSSES.isdisjoint(words)


def _sign_of(value: ast.expr, scope: Scope) -> int:
    """-1: of what is compared, the negative was taken; 0: what was done to it is not known."""
    if isinstance(value, ast.UnaryOp):
        return -1 if isinstance(value.op, ast.USub) else 0
    key = key_of(_plain_of(value))
    text = scope.text
    where = text.scope_of(value)
    changed = _changed_in_place(key, where, scope)
    if changed != 1:
        return changed
    values = assigned(where, key)
    if any(isinstance(e, ast.BinOp) and key in _keys_in(e) for e in values):
        return 0  # `value = sign * value`
    for each in values:
        is_product = isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult)
        factors = (each.left, each.right) if is_product else ()  # type: ignore[attr-defined]
        numbers = [number_of(factor, scope) or 0 for factor in factors]
        if min(numbers, default=0) < 0:
            return -1 if len(values) == 1 else 0  # `score = sign * value`
    negatives = [e for e in values if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub)]
    is_now_and_then = any(
        isinstance(node, ast.If) for each in negatives for node in _inside(each, where, text)
    )
    if negatives:
        return 0 if is_now_and_then or len(negatives) < len(values) else -1
    return 1


def _changed_in_place(key: str, where: Any, scope: Scope) -> int:
    """The sign that a variable gets by what is done to it, as by `value *= sign`; 0: not known."""
    sign = 1
    for node in own_nodes(where):
        if not isinstance(node, ast.AugAssign) or key_of(node.target) != key:
            continue
        if isinstance(node.op, (ast.Add, ast.Div)):
            continue
        number = number_of(node.value, scope) if isinstance(node.op, ast.Mult) else None
        if not number or any(True for _ in _inside(node, where, scope.text)):
            return 0  # or it is done now and then
        sign = sign if number > 0 else -sign
    return sign


def _inside(node: ast.AST, area: ast.AST, text: Text) -> Iterator[ast.AST]:
    """What a node lies in, inside of an area."""
    for each in text.above(node):
        if each is area:
            return
        yield each


def _keys_in(node: ast.AST) -> Iterator[str]:
    key = key_of(node)
    if key:
        yield key
        return
    for child in ast.iter_child_nodes(node):
        yield from _keys_in(child)


def _is_kept(values: set[str], best: set[str], area: Any, scope: Scope) -> bool:
    """Whether what is compared is kept as the best one, one of `best`; of anything where empty.

    And whether that begins by a constant.
    """
    kept: set[str] = set()
    nodes = ast.walk(area) if isinstance(area, ast.ClassDef) else own_nodes(area)
    for node in nodes:
        for target, value in pairs(node):
            key = key_of(target)
            is_best = key in best if best else key not in values or "." in key
            if key and is_best and not values.isdisjoint(set(_keys_in(value))):
                kept.add(key)
    return bool(kept) and all(_begins_by_constant(key, values, area, scope) for key in kept)


def _begins_by_constant(key: str, values: set[str], area: Any, scope: Scope) -> bool:
    """Whether a variable is given nothing else than a constant and what is compared with it."""
    given = assigned(area, key)
    own, _, name = key.rpartition(".")
    if own:
        texts = {id(text): text for text in (scope.text, (scope.caller or scope).text)}
        stores = [
            node
            for node in ast.walk(area)
            if isinstance(node, ast.Attribute)
            and node.attr == name
            and not isinstance(node.ctx, ast.Load)
        ]
        is_known = len(stores) == len(given) and not any(
            _is_set_from_outside(name, area, text) for text in texts.values()
        )
    else:
        is_known = len(scope.text.bindings(name, area)) == len(given)
    constants = [each for each in given if _is_constant(each)]
    others = (each for each in given if each not in constants)
    return (
        is_known
        and bool(constants)
        and not any(values.isdisjoint(set(_keys_in(each))) for each in others)
    )


def _is_set_from_outside(name: str, owner: ast.AST, text: Text) -> bool:
    """Whether an attribute is given values by others than its own class, or by a state loaded."""
    for node in ast.walk(text.tree):
        is_inside = owner in text.above(node)
        if isinstance(node, ast.Attribute) and node.attr == name:
            is_selfs = key_of(node.value) == text.self_of(text.scope_of(node))
            if not isinstance(node.ctx, ast.Load) and not is_selfs:
                return True
        if is_inside and getattr(node, "attr", getattr(node, "id", "")) in _OF_STATES:
            return True
    return False


def _is_constant(node: ast.expr) -> bool:
    """A number that the text itself has, or `None`."""
    if isinstance(node, ast.UnaryOp):
        return _is_constant(node.operand)
    if isinstance(node, ast.IfExp):
        return _is_constant(node.body) and _is_constant(node.orelse)
    if isinstance(node, ast.Call):
        is_number = key_of(node.func).rpartition(".")[2] in ("float", "tensor")
        return is_number and all(_is_constant(each) for each in node.args)
    if isinstance(node, (ast.Name, ast.Attribute)):
        return key_of(node).rpartition(".")[2].lower() in _LIMITS
    return isinstance(node, ast.Constant)
