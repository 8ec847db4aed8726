"""What a value is that an early stopping is given: a loss, by what the text calls it, and its sign.

It may come as an item of a dict of metrics, under a name that the stopping was made with:

    stopper = EarlyStopping(monitor="val_loss")
    stopper.should_stop({"val_loss": val_loss, "accuracy": accuracy})  # asks metrics[self.monitor]
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.text.rounds_text import (
    FUNCTIONS,
    Scope,
    Text,
    argument_of,
    assigned,
    chosen,
    decimal_of,
    key_of,
    own_nodes,
    pairs,
    word_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINKS = 6
_LOSSES = ("cross_entropy", "binary_cross_entropy", "criterion")
_OF_LOSSES = {"loss", "losses"}  # words of a name
_NOT_OF_LOSSES = {"neg", "negative", "minus", "no", "gain", "drop", "delta", "improvement"}
_OF_TENSORS = ("item", "mean", "detach", "cpu", "float")
_OF_NUMBERS = ("mean", "float", "sum", "fmean")
_CHANGING = ("update", "setdefault", "pop", "clear")  # of a dict

# What a value is.
UNKNOWN, LOSS, TRAINED_LOSS = 0, 1, 2  # `TRAINED_LOSS`: on which `backward()` is called


def kind_of(value: ast.expr | None, scope: Scope, links: int = 0) -> tuple[int, int]:
    """What a value is by what the text calls it, and the sign with which it is that."""
    nothing = UNKNOWN, 0
    if value is None or links > _MOST_LINKS:
        return nothing
    if form_of(value) in forms_of_losses(scope.text):
        return LOSS, 1
    if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub):
        kind, sign = kind_of(value.operand, scope, links + 1)
        return kind, -sign
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Div):
        return kind_of(value.left, scope, links + 1)
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        for factor, other in ((value.left, value.right), (value.right, value.left)):
            number = decimal_of(factor, scope)
            if number:
                kind, sign = kind_of(other, scope, links + 1)
                return kind, sign if number > 0 else -sign
        return nothing
    if isinstance(value, ast.IfExp):
        return kind_of(chosen(value, scope), scope, links + 1)
    if isinstance(value, ast.Call):
        inner = value.func.value if isinstance(value.func, ast.Attribute) else None
        name = getattr(value.func, "attr", getattr(value.func, "id", ""))
        if inner is not None and name == "get" and 0 < len(value.args) < 3:
            return _kind_of_item(inner, value.args[0], scope, links)
        if inner is not None and not value.args and name in _OF_TENSORS:
            return kind_of(inner, scope, links + 1)
        if len(value.args) == 1 and name in _OF_NUMBERS:
            return kind_of(value.args[0], scope, links + 1)
        return (LOSS, 1) if _is_called_loss(name) or name in _LOSSES else nothing
    if isinstance(value, ast.Subscript):
        return _kind_of_item(value.value, value.slice, scope, links)
    if isinstance(value, ast.Name):
        return _kind_of_variable(value, scope, links)
    is_loss = isinstance(value, ast.Attribute) and _is_called_loss(value.attr)
    return (LOSS, 1) if is_loss else nothing


def _kind_of_variable(value: ast.Name, scope: Scope, links: int) -> tuple[int, int]:
    text, name = scope.text, value.id
    anew = _signed_anew(value, scope)
    values = [each for each in assigned(scope.node, name) if each not in anew.values()]
    is_chosen = len(values) == 1 and isinstance(values[0], ast.IfExp)
    changed = _changed_in_place(name, scope.node, scope)
    for factor in anew.values():
        changed *= _sign_of_product(factor, scope)
    if text.scope_of(value) is not scope.node or changed == 0:
        return UNKNOWN, 0
    if not anew and not is_chosen and sign_of(value, scope) == 0:
        return UNKNOWN, 0
    in_place: list[ast.AST] = [*anew]
    in_place += [n.target for n in own_nodes(scope.node) if isinstance(n, ast.AugAssign)]
    found = [node for node in text.bindings(name, scope.node) if node not in in_place]
    if len(found) == 1 and isinstance(found[0], ast.arg):
        given = argument_of(name, scope)
        kind, sign = (UNKNOWN, 0) if given is None else kind_of(given[0], given[1], links + 1)
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
        kinds = {kind_of(each, scope, links + 1) for each in values}
        kind, sign = kinds.pop()
        if kind and not kinds:
            return kind, sign * changed
    is_plain = sign_of(value, scope) == 1 and not any(isinstance(v, ast.UnaryOp) for v in values)
    return (LOSS, 1) if _is_called_loss(name) and is_plain else (UNKNOWN, 0)


def _signed_anew(value: ast.Name, scope: Scope) -> dict[ast.expr, ast.BinOp]:
    """Where it is always multiplied before it is asked about: `score = sign * score`."""
    return {
        target: product
        for node in (scope.node.body if isinstance(scope.node.body, list) else [])
        if isinstance(node, ast.Assign) and node.lineno < value.lineno
        for target, product in pairs(node)
        if key_of(target) == value.id
        and isinstance(product, ast.BinOp)
        and isinstance(product.op, ast.Mult)
        and value.id in (key_of(product.left), key_of(product.right))
    }


def _kind_of_item(holder: ast.expr, key: ast.expr, scope: Scope, links: int) -> tuple[int, int]:
    """Of an item of a dict of metrics: by what was put there, or else by its name."""
    nothing = UNKNOWN, 0
    word = word_of(key, scope)
    if word is None:
        return nothing
    by_name = (LOSS, 1) if _is_called_loss(word) else nothing
    made = _dict_of(holder, word, scope)
    if made is None:
        return by_name
    items, where = made
    values = [
        value
        for name, value in zip(items.keys, items.values, strict=True)
        if name is None or not isinstance(name, ast.Constant) or name.value == word
    ]
    if not values or not isinstance(items.keys[items.values.index(values[-1])], ast.Constant):
        return by_name  # of another dict that it takes in
    kind, sign = kind_of(values[-1], where, links + 1)
    if kind:
        return kind, sign
    # What is computed on the spot may be the loss with another sign.
    is_plain = isinstance(values[-1], (ast.Name, ast.Attribute, ast.Subscript, ast.Call))
    return by_name if is_plain and sign_of(values[-1], where) == 1 else nothing


def _dict_of(holder: ast.expr, word: str, scope: Scope) -> tuple[ast.Dict, Scope] | None:
    """The dict, as the text writes it, that a variable holds. None: it may be another by then."""
    for _ in range(_MOST_LINKS):
        if isinstance(holder, ast.Dict):
            return holder, scope
        if not isinstance(holder, ast.Name):
            return None
        name, where = holder.id, scope.node
        if scope.text.scope_of(holder) is not where or _is_filled(name, word, where):
            return None
        found = scope.text.bindings(name, where)
        if len(found) != 1:
            return None
        if isinstance(found[0], ast.arg):
            given = argument_of(name, scope)
            if given is None:
                return None
            holder, scope = given
            continue
        values = assigned(where, name)
        if len(values) != 1:
            return None
        holder = values[0]
    return None


def _is_filled(name: str, word: str, where: Any) -> bool:
    """Whether a dict may get another item of this name after it was made."""
    for node in own_nodes(where):
        if isinstance(node, ast.Subscript) and key_of(node.value) == name:
            is_another = isinstance(node.slice, ast.Constant) and node.slice.value != word
            if not isinstance(node.ctx, ast.Load) and not is_another:
                return True
        is_called = isinstance(node, ast.Attribute) and node.attr in _CHANGING
        if is_called and key_of(node.value) == name:  # type: ignore[attr-defined]
            return True
        if isinstance(node, ast.AugAssign) and key_of(node.target) == name:
            return True
    return False


def form_of(value: ast.AST) -> str:
    """How a value is computed, of whatever it is: "listwise().mean()". Empty: not known."""
    if isinstance(value, ast.BinOp):
        parts = [form_of(each) for each in (value.left, value.right)]
        return f"({parts[0]} {type(value.op).__name__} {parts[1]})" if all(parts) else ""
    if isinstance(value, ast.Constant):
        return repr(value.value)
    if not isinstance(value, ast.Call):
        return ""
    if not isinstance(value.func, ast.Attribute) or key_of(value.func):
        name = key_of(value.func)
        return f"{name}()" if name else ""
    inner, name = form_of(value.func.value), value.func.attr
    if not inner or name in ("item", "detach", "cpu"):
        return inner
    return f"{inner}.{name}({', '.join(map(ast.unparse, value.args))})"


def forms_of_losses(text: Text) -> set[str]:
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
            forms.add(form_of(values[0]))
    return {form for form in forms if not own.isdisjoint(re.findall(r"\w+", form))}


def _is_called_loss(name: str) -> bool:
    words = name.lower().split("_")
    return not _OF_LOSSES.isdisjoint(words) and _NOT_OF_LOSSES.isdisjoint(words)


def plain_of(node: ast.expr) -> ast.expr:
    """Without a sign before it, and without `.item()` behind it."""
    if isinstance(node, ast.UnaryOp):
        return node.operand
    is_item = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    if is_item and not node.args and node.func.attr == "item":  # type: ignore[attr-defined]
        value: ast.expr = node.func.value  # type: ignore[attr-defined]
        return value
    return node


def sign_of(value: ast.expr, scope: Scope) -> int:
    """-1: of what is compared, the negative was taken; 0: what was done to it is not known."""
    if isinstance(value, ast.UnaryOp):
        return -sign_of(value.operand, scope) if isinstance(value.op, ast.USub) else 0
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        return _sign_of_product(value, scope)
    key = key_of(plain_of(value))
    if not key:
        return 1
    text = scope.text
    where = text.scope_of(value)
    changed = _changed_in_place(key, where, scope)
    if changed != 1:
        return changed
    values = assigned(where, key)
    if any(isinstance(e, ast.BinOp) and key in keys_in(e) for e in values):
        return 0  # `value = sign * value`
    if any(isinstance(e, ast.IfExp) and _changes_sign(e) for e in values):
        return 0
    for each in values:
        if isinstance(each, ast.BinOp) and isinstance(each.op, ast.Mult):
            sign = _sign_of_product(each, scope)
            if sign < 1:  # `score = sign * value`
                return sign if len(values) == 1 else 0
    negatives = [e for e in values if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub)]
    is_now_and_then = any(
        isinstance(node, ast.If) for each in negatives for node in _inside(each, where, text)
    )
    if negatives:
        return 0 if is_now_and_then or len(negatives) < len(values) else -1
    return 1


def _changes_sign(node: ast.AST) -> bool:
    """Whether one of two values that may be chosen has a sign before it, or is a product."""
    signs = (ast.USub, ast.Mult, ast.Sub)
    return any(isinstance(getattr(each, "op", None), signs) for each in ast.walk(node))


def _sign_of_product(product: ast.BinOp, scope: Scope) -> int:
    """Of what is multiplied by a number; 0: that number is not known."""
    for factor in (product.left, product.right):
        number = decimal_of(factor, scope)
        if number is not None:
            return (number > 0) - (number < 0)
    return 0


def _changed_in_place(key: str, where: Any, scope: Scope) -> int:
    """The sign that a variable gets by what is done to it, as by `value *= sign`; 0: not known."""
    sign = 1
    for node in own_nodes(where):
        if not isinstance(node, ast.AugAssign) or key_of(node.target) != key:
            continue
        if isinstance(node.op, (ast.Add, ast.Div)):
            continue
        number = decimal_of(node.value, scope) if isinstance(node.op, ast.Mult) else None
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


def keys_in(node: ast.AST) -> Iterator[str]:
    """The variables in an expression, and attributes of variables."""
    key = key_of(node)
    if key:
        yield key
        return
    for child in ast.iter_child_nodes(node):
        yield from keys_in(child)
