"""What counts as better for an early stopping: lower values or higher ones, of what, by how much.

The comparison with the best value may stand where the count is changed, in a variable, or in a
function, method or `operator` that is asked; which way it goes may be chosen by a word or a flag
that the stopping was made with:

    def is_better(self, value):
        if self.best is None:
            return True
        return value < self.best if self.mode == "min" else value > self.best

A branch counts only where it is certain that it is taken. Where it is not, it is said that there is
a comparison, and nothing of which.
"""

from __future__ import annotations

import ast
from typing import Any, NamedTuple

from traindbg.hooks.torch.text.rounds_text import (
    FUNCTIONS,
    Scope,
    Text,
    argument_of,
    assigned,
    chosen,
    decimal_of,
    is_base,
    key_of,
    own_nodes,
    pairs,
    set_once,
    stores_of,
    taken,
    truth_of,
)
from traindbg.hooks.torch.text.rounds_values import (
    UNKNOWN,
    keys_in,
    kind_of,
    plain_of,
    sign_of,
)

_MOST_LINKS = 6
FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.GtE,
    ast.Gt: ast.Lt,
    ast.GtE: ast.LtE,
    ast.Eq: ast.Eq,
}
_OPERATORS: dict[str, type[ast.cmpop]] = {
    "lt": ast.Lt,
    "le": ast.LtE,
    "gt": ast.Gt,
    "ge": ast.GtE,
    "less": ast.Lt,
    "less_equal": ast.LtE,
    "greater": ast.Gt,
    "greater_equal": ast.GtE,
}
_OPERATORS_OF = ("operator", "numpy", "torch")
_OF_STATES = ("__dict__", "vars", "setattr")
_LIMITS = ("inf", "infty", "maxsize", "max")
_OF_NO_NUMBERS = ("isnan", "isinf", "isfinite")

Found = tuple[int, float, int]  # sense, least gain and kind, as in `Stop`
Guard = tuple[ast.expr, bool]  # what an `if` asks, and in which of its branches something lies
Answer = tuple[ast.expr, Guard | None]

_VAGUE: Found = (0, -1.0, UNKNOWN)  # a comparison, it is not known of which kind


class _Place(NamedTuple):
    """Where the count is changed, and where the best value is kept."""

    area: Any
    scope: Scope


def better(statement: ast.AST, area: Any, scope: Scope, is_worse: bool = True) -> Found | None:
    """The sense of an `if` in one of whose branches a statement deals with a value.

    And the least gain that counts, and what the value is. `is_worse`: the value is no better there,
    and is counted. None: nothing asks for a better value.
    """
    place = _Place(area, scope)
    below = statement
    for node in scope.text.above(statement):
        for other in _left_before(below, node):
            found = _asked(other.test, not is_worse, place, scope, 0)
            if found is not None:
                return found
        if node is area:
            break
        if isinstance(node, (ast.If, ast.IfExp)) and below is not node.test:
            body = node.body if isinstance(node.body, list) else [node.body]
            found = _asked(node.test, (below in body) == is_worse, place, scope, 0)
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


def _asked(test: ast.expr, is_worse: bool, place: _Place, scope: Scope, links: int) -> Found | None:
    """`is_worse`: the test is true where a value is not better."""
    if links > _MOST_LINKS:
        return None
    if isinstance(test, ast.BoolOp):
        return _of_several(test, is_worse, place, scope, links)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _asked(test.operand, not is_worse, place, scope, links + 1)
    if isinstance(test, ast.IfExp):
        one = chosen(test, scope)
        return None if one is None else _asked(one, is_worse, place, scope, links + 1)
    if isinstance(test, ast.Name):
        where = scope.text.scope_of(test)
        given = assigned(where, test.id)
        values = taken(given, scope)
        if len(values) == 1:
            return _asked(values[0], is_worse, place, scope, links + 1)
        if len(scope.text.bindings(test.id, where)) != len(given):
            return None
        answers = [(value, _guard_of(value, scope)) for value in values]
        return _of_answers(answers, is_worse, place, scope, links)
    if isinstance(test, ast.Call):
        found = _of_function(test, is_worse, place, scope, links)
        if found is not None:
            return found
        keys = {key for each in test.args for key in _keys_outside(each, place, scope)}
        return _VAGUE if _is_kept(keys, set(), place) else None
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return None
    return _compared(test.left, test.comparators[0], type(test.ops[0]), is_worse, place, scope)


def _of_several(
    test: ast.BoolOp, is_worse: bool, place: _Place, scope: Scope, links: int
) -> Found | None:
    """Of an `and` or `or`; what is known to hold or not to hold decides it, or says nothing."""
    is_and = isinstance(test.op, ast.And)
    found: list[Found] = []
    for each in test.values:
        truth = truth_of(each, scope)
        if truth is not None and truth != is_and:
            return None
        one = None if truth is not None else _asked(each, is_worse, place, scope, links + 1)
        if one is not None:
            found.append(one)
    return _common(found)


def _common(found: list[Found]) -> Found | None:
    """What several comparisons have in common. None: there are none."""
    if len(set(found)) < 2:
        return found[0] if found else None
    if len({sense for sense, _, _ in found}) > 1:
        return _VAGUE
    kinds = {kind for _, _, kind in found}
    return found[0][0], -1.0, kinds.pop() if len(kinds) == 1 else UNKNOWN


def _compared(
    left: ast.expr,
    right: ast.expr,
    op: type[ast.cmpop],
    is_worse: bool,
    place: _Place,
    scope: Scope,
) -> Found | None:
    """Of a value and the best one."""
    if op not in FLIPPED or op is ast.Eq:
        return None
    # `best - value > least`: as `value < best - least`.
    least: ast.expr | None = None
    gained = left
    if isinstance(gained, ast.BinOp) and isinstance(gained.op, ast.Sub):
        least, left, right, op = right, gained.right, gained.left, FLIPPED[op]
    keys, others = _keys_outside(left, place, scope), _keys_outside(right, place, scope)
    if not _is_kept(keys, others, place, is_known=True):
        if not _is_kept(others, keys, place, is_known=True):
            return None
        left, right, op = right, left, FLIPPED[op]
    sense = -1 if op in (ast.Lt, ast.LtE) else 1
    sense = -sense if is_worse else sense
    if least is None:
        left, right, least = _without_gain(left, right, sense)
    gain = 0.0 if least is None else decimal_of(least, scope)
    if not key_of(right) or not key_of(plain_of(left)) or gain is None or gain < 0:
        gain = -1.0
    kind, sign = kind_of(left, scope)
    return sense * (sign if kind else _sign_outside(left, place, scope)), gain, kind


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


# Functions that are asked.


def _of_function(
    test: ast.Call, is_worse: bool, place: _Place, scope: Scope, links: int
) -> Found | None:
    """Of a function, a method or an operator. None: not known, or it asks for something else."""
    inner = _function_of(test, scope)
    if inner is not None:
        answers: list[Answer] = []
        if _collect(inner.node.body, inner, None, answers) is None:
            return None
        return _of_answers(answers, is_worse, place, inner, links)
    source = _operator_of(test.func, scope)
    if source is None:
        return None
    called, where = source
    if isinstance(called, ast.Lambda):
        inside = Scope(where.text, called, scope, test)
        return _asked(called.body, is_worse, place, inside, links + 1)
    if len(test.args) != 2 or any(isinstance(each, ast.Starred) for each in test.args):
        return None
    op = _OPERATORS[key_of(called).rpartition(".")[2]]
    return _compared(test.args[0], test.args[1], op, is_worse, place, scope)


def _function_of(test: ast.Call, scope: Scope) -> Scope | None:
    """The only function of the program's text that a call can mean."""
    text, name = scope.text, key_of(test.func)
    nodes: list[Any] = []
    if name and "." not in name:
        places = {id(place): place for place in (text.tree, scope.node)}.values()
        nodes = [node for place in places for node in text.bindings(name, place)]
    elif isinstance(test.func, ast.Attribute):
        owner = text.class_of(scope.node)
        if owner is None or key_of(test.func.value) != text.self_of(scope.node):
            found = text.class_of_value(test.func.value, scope)
            if found is None:
                return None
            text, owner = found
        inside = Scope(text, owner, scope)
        if is_base(owner, inside) or stores_of(test.func.attr, owner, inside):
            return None
        nodes = text.bindings(test.func.attr, owner)
    is_known = len(nodes) == 1 and isinstance(nodes[0], ast.FunctionDef)
    return Scope(text, nodes[0], scope, test) if is_known else None


def _operator_of(called: ast.expr, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """A comparison that is called by name, or that a variable was given, and where it was."""
    for _ in range(_MOST_LINKS):
        one = chosen(called, scope)
        if one is None or isinstance(one, ast.Lambda):
            return None if one is None else (one, scope)
        name = key_of(one)
        base, _, last = name.rpartition(".")
        if last in _OPERATORS and _is_imported(base, last, scope):
            return one, scope
        if base and base == scope.text.self_of(scope.node):
            source = set_once(last, scope)
            if source is None:
                return None
            called, scope = source
            continue
        if not name or base:
            return None
        found, values = scope.text.bindings(name, scope.node), assigned(scope.node, name)
        if len(found) == 1 and isinstance(found[0], ast.arg):
            given = argument_of(name, scope)
            if given is None:
                return None
            called, scope = given
        elif len(found) == len(values) == 1:
            called = values[0]
        else:
            return None
    return None


def _is_imported(base: str, last: str, scope: Scope) -> bool:
    """Whether a name is one of a module of operators, and nothing else."""
    found = scope.text.bindings(base or last, scope.text.tree)
    if len(found) != 1 or (scope.text.bindings(base or last, scope.node) or found) != found:
        return False
    node = found[0]
    if not isinstance(node, ast.Import if base else ast.ImportFrom):
        return False
    names = {each.asname or each.name: each.name for each in node.names}
    if base:
        return names.get(base) in _OPERATORS_OF
    return names.get(last) == last and getattr(node, "module", "") in _OPERATORS_OF


def _collect(
    body: list[ast.stmt], scope: Scope, guard: Guard | None, found: list[Answer]
) -> bool | None:
    """Puts what a function may answer into `found`; whether that ends it. None: not known."""
    for statement in body:
        if isinstance(statement, ast.Return):
            if statement.value is not None:
                found.append((statement.value, guard))
            return True
        if isinstance(statement, ast.Raise):
            return True
        if isinstance(statement, ast.If):
            truth = truth_of(statement.test, scope)
            ends = []
            for part, is_body in ((statement.body, True), (statement.orelse, False)):
                if truth is not None and truth != is_body:
                    continue
                inner = guard if truth is not None else (statement.test, is_body)
                end = _collect(part, scope, inner, found)
                if end is None:
                    return None
                ends.append(end)
            if all(ends):
                return True
        elif any(isinstance(node, (ast.Return, ast.Yield)) for node in ast.walk(statement)):
            return None
    return False


def _guard_of(node: ast.AST, scope: Scope) -> Guard | None:
    """The innermost `if` around what a name is set to, unless it is known to be taken."""
    below = node
    for above in scope.text.above(node):
        if isinstance(above, FUNCTIONS):
            break
        is_inside = isinstance(above, ast.If) and below is not above.test
        if is_inside and truth_of(above.test, scope) is None:  # type: ignore[attr-defined]
            return above.test, below in above.body  # type: ignore[attr-defined]
        below = above
    return None


def _of_answers(
    answers: list[Answer], is_worse: bool, place: _Place, scope: Scope, links: int
) -> Found | None:
    """Of all that a function may answer, or a name may be set to. None: of some it is not known."""
    found: list[Found] = []
    for value, guard in answers:
        if isinstance(value, ast.Constant):
            if guard is None or _is_of_first(guard[0]):
                continue
            # `if value < best: return True`
            is_same = guard[1] == bool(value.value)
            one = _asked(guard[0], is_worse if is_same else not is_worse, place, scope, links + 1)
        else:
            one = _asked(value, is_worse, place, scope, links + 1)
        if one is None:
            return None
        found.append(one)
    return _common(found)


def _is_of_first(test: ast.expr) -> bool:
    """Whether a test is about a best value that there is not yet, or a value that is no number."""
    if isinstance(test, ast.Call):
        return key_of(test.func).rpartition(".")[2] in _OF_NO_NUMBERS
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _is_of_first(test.operand)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    is_none = isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
    return is_none and isinstance(test.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))


def _keys_outside(node: ast.AST, place: _Place, scope: Scope, links: int = 0) -> set[str]:
    """The variables in an expression, as they are called where the count is changed."""
    keys = set(keys_in(node))
    outer = place.scope
    if scope.node is outer.node or links > _MOST_LINKS:
        return keys if scope.node is outer.node else set()
    method = scope.node
    if isinstance(method, ast.Lambda):
        method = scope.text.scope_of(method)
    own, outer_own = scope.text.class_of(method), outer.text.class_of(outer.node)
    found: set[str] = set()
    for key in keys:
        head, _, rest = key.partition(".")
        if rest:
            if head == scope.text.self_of(method) and own is not None and own is outer_own:
                found.add(f"{outer.text.self_of(outer.node)}.{rest}")
            continue
        given = argument_of(head, scope)
        bound = scope.text.bindings(head, scope.node)
        if given is not None and len(bound) == 1 and isinstance(bound[0], ast.arg):
            found |= _keys_outside(given[0], place, given[1], links + 1)
    return found


def _sign_outside(value: ast.expr, place: _Place, scope: Scope) -> int:
    """The sign of a value, also of what a function that is asked was given."""
    sign = sign_of(value, scope)
    for _ in range(_MOST_LINKS):
        if scope.node is place.scope.node:
            return sign
        given = argument_of(key_of(plain_of(value)), scope)
        if given is None:
            return sign
        value, scope = given
        sign *= sign_of(value, scope)
    return 0


# The best value.


def _is_kept(values: set[str], best: set[str], place: _Place, is_known: bool = False) -> bool:
    """Whether what is compared is kept as the best one, and that begins by a constant.

    As one of `best`; where these are empty and not `is_known`, as anything.
    """
    area, scope = place
    kept: set[str] = set()
    nodes = ast.walk(area) if isinstance(area, ast.ClassDef) else own_nodes(area)
    for node in nodes:
        for target, value in pairs(node):
            key = key_of(target)
            is_best = key in best if best or is_known else key not in values or "." in key
            if key and is_best and not values.isdisjoint(set(keys_in(value))):
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
        and not any(values.isdisjoint(set(keys_in(each))) for each in others)
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
