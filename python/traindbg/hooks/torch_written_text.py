"""What a number is that a program reads in an evaluation, by how its text computes it.

    wrong += (model(x) - y).pow(2).sum().item()  # the squared errors, added up
    val = focal(model(x_val), y_val).item()      # by the function that the training lowers

Told are errors of what the model gave, squared or without their signs, and the training's own loss
where it is computed in the same way: by the same function of the program, or in the same words.
Nothing is told where the errors are weighed, masked, of another scale, or of a part.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from traindbg.hooks.torch_rounds_text import Scope, Text, key_of, own_nodes, pairs
from traindbg.hooks.torch_rounds_values import form_of, forms_of_losses

if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from types import CodeType

SQUARES, ABSOLUTES, LOSS = "squares", "absolutes", "loss"  # of what
# How many there are: one for each number, or for several of them; `MEANS`: means, added up.
EACH, SEVERAL, MEAN, SUM, ROOT, MEANS = "each", "several", "mean", "sum", "root", "means"
_OUTPUT, _ERROR = "output", "error"

_MOST_LINKS = 6
_SAME = {
    *("squeeze", "unsqueeze", "view", "reshape", "flatten", "ravel", "view_as", "reshape_as"),
    *("float", "double", "to", "cpu", "detach", "contiguous", "clone", "type_as"),
}
_OF_TORCH = ("torch", "th")


class Meaning(NamedTuple):
    """`MEAN` of `SQUARES`, say; of `LOSS`, it is always the mean."""

    of: str
    how: str


def node_at(text: Text, code: CodeType, instruction: int) -> ast.Call | None:
    """The call that a frame of this code is in; None: that is not known, as before Python 3.11."""
    tell = getattr(code, "co_positions", None)
    places = [] if tell is None else list(tell())
    if instruction // 2 >= len(places) or None in places[instruction // 2]:
        return None
    line, last_line, column, last_column = places[instruction // 2]
    found = [
        node
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Call)
        and (node.lineno, node.col_offset) == (line, column)
        and (node.end_lineno, node.end_col_offset) == (last_line, last_column)
    ]
    return found[0] if len(found) == 1 else None


def read_by(call: ast.Call) -> ast.expr | None:
    """What is made a number: of `x.item()` and `float(x)`, `x`."""
    if isinstance(call.func, ast.Attribute) and call.func.attr == "item" and not call.args:
        return call.func.value
    if key_of(call.func) == "float" and len(call.args) == 1 and not call.keywords:
        return call.args[0]
    return None


def meaning_of(value: ast.expr, scope: Scope, models: Collection[ast.AST]) -> Meaning | None:
    """`models`: the calls in which the model was."""
    found = _Reader(scope, models.__contains__).read(value)
    if found is not None and found.of in (SQUARES, ABSOLUTES):
        return found if found.how not in (EACH, SEVERAL) else None
    return _as_trained(value, scope, models)


def trained_by(text: Text) -> Meaning | None:
    """What the only value is on which a text calls `backward()`, where it is written out."""
    roots = _roots(text)
    if len(roots) != 1:
        return None
    scope = Scope(text, text.scope_of(roots[0]))
    found = _Reader(scope, _is_of_a_variable, knows_models=False).read(roots[0])
    return found if found is not None and found.how == MEAN else None


def _is_of_a_variable(node: ast.AST) -> bool:
    """Whether it may be the call of a model."""
    return isinstance(node, ast.Call) and bool(key_of(node.func)) and not _is_of_torch(node)


def _is_of_torch(call: ast.Call) -> bool:
    return key_of(call.func).partition(".")[0] in _OF_TORCH


def _roots(text: Text) -> list[ast.expr]:
    return [
        node.func.value
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
    ]


def _as_trained(value: ast.expr, scope: Scope, models: Collection[ast.AST]) -> Meaning | None:
    reader = _Reader(scope, models.__contains__)
    if len(_roots(scope.text)) != 1 or not reader.has_model(value):
        return None
    for _ in range(_MOST_LINKS):
        if form_of(value) in forms_of_losses(scope.text):
            return Meaning(LOSS, MEAN)
        before = reader.before(value) if isinstance(value, ast.Name) else None
        if before is None:
            return None
        value = before
    return None


class _Reader:
    """`is_model(call)`: what a call gives is the model's; without `knows_models`: it may be."""

    def __init__(
        self, scope: Scope, is_model: Callable[[ast.AST], bool], knows_models: bool = True
    ) -> None:
        self._scope = scope
        self._is_model = is_model
        self._knows_models = knows_models

    def before(self, name: ast.Name) -> ast.expr | None:
        """What a variable was given last, by the text, before it is used here.

        Of several that are given their values at once, what these are taken from.
        """
        text = self._scope.text
        area = text.scope_of(name)
        around = {id(each) for each in text.above(name)}
        found: list[tuple[int, ast.expr]] = []
        for node in own_nodes(area):
            if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.lineno > name.lineno:
                continue
            if id(node) in around or id(next(text.above(node), None)) not in around:
                continue  # made in another branch, or being made here
            given = [value for target, value in pairs(node) if key_of(target) == name.id]
            if not given and isinstance(node, ast.Assign):
                parts = [each for target in node.targets for each in ast.walk(target)]
                is_among = any(isinstance(e, ast.Name) and e.id == name.id for e in parts)
                given = [node.value] if is_among else []
            found += [(node.lineno, value) for value in given]
        return max(found, key=lambda each: each[0], default=(0, None))[1]

    def has_model(self, value: ast.AST, links: int = 0) -> bool:
        """Whether something of the model's goes into a value."""
        for node in ast.walk(value):
            if self._is_model(node):
                return True
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and links < 4:
                before = self.before(node)
                if before is not None and self.has_model(before, links + 1):
                    return True
        return False

    def read(self, value: ast.expr | None, links: int = 0) -> Meaning | None:
        """What a value is. None: not known."""
        if value is None or links > 4 * _MOST_LINKS:
            return None
        if self._is_model(value):
            return Meaning(_OUTPUT, EACH)
        if isinstance(value, ast.Name):
            return self._of_variable(value, links)
        if isinstance(value, ast.BinOp):
            return self._of_operation(value, links)
        if isinstance(value, ast.Attribute):
            inner = self.read(value.value, links + 1)
            return inner if inner is not None and inner.of == _OUTPUT else None
        if not isinstance(value, ast.Call):
            return None
        if isinstance(value.func, ast.Attribute) and not _is_of_torch(value):
            return self._of_call(value.func.attr, value.func.value, value.args, value, links)
        is_absolute = key_of(value.func) == "abs"
        if value.args and (is_absolute or _is_of_torch(value)):
            name = key_of(value.func).rpartition(".")[2]
            return self._of_call(name, value.args[0], value.args[1:], value, links)
        return None

    def _of_variable(self, name: ast.Name, links: int) -> Meaning | None:
        added = [
            node
            for node in own_nodes(self._scope.text.scope_of(name))
            if isinstance(node, ast.AugAssign) and key_of(node.target) == name.id
        ]
        if not added:
            return self.read(self.before(name), links + 1)
        if len(added) != 1 or not isinstance(added[0].op, ast.Add):
            return None
        found = self.read(added[0].value, links + 1)
        if found is None or found.how not in (MEAN, SUM):
            return None
        return Meaning(found.of, SUM if found.how == SUM else MEANS)

    def _of_operation(self, value: ast.BinOp, links: int) -> Meaning | None:
        left = self.read(value.left, links + 1)
        if isinstance(value.op, ast.Sub):
            right = self.read(value.right, links + 1)
            one, other = (left, value.right) if left is not None else (right, value.left)
            is_of_two = self._knows_models and self.has_model(other)
            is_error = one == Meaning(_OUTPUT, EACH) and not is_of_two
            return Meaning(_ERROR, EACH) if is_error else None
        if left is None:
            return None
        if isinstance(value.op, ast.Pow) and isinstance(value.right, ast.Constant):
            return _power(left, value.right.value)
        is_product = isinstance(value.op, ast.Mult) and left.of == _ERROR
        if is_product and ast.dump(value.left) == ast.dump(value.right):
            return Meaning(SQUARES, EACH)
        return None

    def _of_call(
        self, name: str, of: ast.expr, args: list[ast.expr], call: ast.Call, links: int
    ) -> Meaning | None:
        inner = self.read(of, links + 1)
        if inner is None:
            return None
        if name in _SAME:
            return inner
        is_error = inner.of in (SQUARES, ABSOLUTES) and inner.how in (EACH, SEVERAL)
        if name == MEAN and is_error and (args or call.keywords):
            return Meaning(inner.of, SEVERAL)
        if name == "pow" and len(args) == 1 and isinstance(args[0], ast.Constant):
            return _power(inner, args[0].value)
        if args or call.keywords:
            return None
        if name == "square":
            return _power(inner, 2)
        if name == "sqrt":
            return _power(inner, 0.5)
        if name == "abs":
            return Meaning(ABSOLUTES, EACH) if inner.of == _ERROR else None
        if is_error and (name == MEAN or (name == SUM and inner.how == EACH)):
            return Meaning(inner.of, name)
        return None


def _power(of: Meaning, exponent: object) -> Meaning | None:
    if of.of == _ERROR and exponent in (2, 2.0):
        return Meaning(SQUARES, EACH)
    if of == Meaning(SQUARES, MEAN) and exponent == 0.5:
        return Meaning(SQUARES, ROOT)
    return None
