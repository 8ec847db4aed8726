"""What a number is that a program reads in an evaluation, by how its text computes it.

    wrong += (model(x) - y).pow(2).sum().item()  # the squared errors of a batch, added up
    val = focal(model(x_val), y_val).item()      # by the function that the training lowers

Told are plain errors of what the model gave, squared or without their signs, and the training's own
loss where both are the same expression but for the names of data. The model may be called in it, or
in a function of the program that is called in it. All else is not known: what is
weighed, masked, of another scale or of a part; what is compared with what a model gave; what has
been given to something in between that may change it, or has several values that it may have.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg.hooks.torch.text.rounds_text import FUNCTIONS, LOOPS, Text, key_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from types import CodeType

SQUARES, ABSOLUTES, LOSS = "squares", "absolutes", "loss"  # of what
# How many there are: one for each number, or for several of them.
EACH, SEVERAL, MEAN, SUM, ROOT = "each", "several", "mean", "sum", "root"
_OUTPUT, _ERROR = "output", "error"

_MOST_NODES = 2000  # that are looked at for a number
_MOST_LINKS = 4
_SAME = frozenset({"squeeze", "unsqueeze", "view", "reshape", "flatten", "ravel", "view_as"})
_PLAIN = frozenset({"float", "double", "detach", "cpu", "contiguous"})
_OF_TORCH = ("torch", "th")
_MODEL = "model"
_DATA = "data"
_LOOPS: tuple[type[ast.AST], ...] = LOOPS
_COMPREHENSIONS = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)


class Meaning(NamedTuple):
    """`MEAN` of `SQUARES`, say; of `LOSS`, it is always the mean. `model`: the call of it."""

    of: str
    how: str
    model: ast.AST | None = None


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


def meaning_of(value: ast.expr, text: Text, models: Collection[ast.AST]) -> Meaning | None:
    """`models`: the calls in which the model was, in training and in evaluations."""
    reader = _Reader(text, models)
    found = reader.read(value)
    if found is not None and found.how in (MEAN, SUM, ROOT):
        return found
    root = _root(text)
    if root is None:
        return None
    inside = _Reader(text, models)
    form, trained = inside.form_of(value), reader.form_of(root)
    is_same = form is not None and form == trained and len(inside.models) == 1
    is_same = is_same and _are_same_functions(text, value, root, inside.called)
    return Meaning(LOSS, MEAN, next(iter(inside.models))) if is_same else None


def trained_by(text: Text, models: Collection[ast.AST]) -> Meaning | None:
    """What the only value is on which a text calls `backward()`, where it is written out."""
    root = _root(text)
    found = None if root is None else _Reader(text, models).read(root)
    return found if found is not None and found.how == MEAN else None


def _root(text: Text) -> ast.expr | None:
    found = [
        node.func.value
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "backward"
    ]
    return found[0] if len(found) == 1 else None


def _are_same_functions(text: Text, one: ast.AST, other: ast.AST, called: set[str]) -> bool:
    """Whether these names stand for the same in two places."""
    scopes = {text.scope_of(one), text.scope_of(other)}
    for name in called:
        first = name.partition(".")[0]
        own = {id(text.class_of(scope)) for scope in scopes if text.self_of(scope) == first}
        if own:
            if len(own) != 1 or any(text.self_of(scope) != first for scope in scopes):
                return False
        elif any(text.bindings(first, s) for s in scopes if s is not text.tree):
            if len(scopes) > 1:
                return False
        elif len(text.bindings(first, text.tree)) != 1 or text.is_changed_elsewhere(first):
            return False
    return True


def _is_of_torch(call: ast.Call) -> bool:
    return key_of(call.func).partition(".")[0] in _OF_TORCH


def _is_of_value(method: ast.Attribute) -> bool:
    """Whether it may be a tensor's: else it is a function of an object of the program's."""
    return not key_of(method) or hasattr(torch.Tensor, method.attr)


def _base_of(value: ast.expr, through_names: bool = True) -> ast.expr:
    """Of a part of something, or of the same in another form: that.

    `through_names`: also of what has a name in it, such as `batch.x` and `batch["x"]`.
    """
    while True:
        is_named = isinstance(value, ast.Attribute) or (
            isinstance(value, ast.Subscript)
            and isinstance(value.slice, ast.Constant)
            and isinstance(value.slice.value, str)
        )
        if is_named and not through_names:
            return value
        if isinstance(value, (ast.Attribute, ast.Subscript)):
            value = value.value
        elif (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in _SAME | _PLAIN
        ):
            value = value.func.value
        else:
            return value


def _attribute_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ""


def _is_among(node: ast.AST, keys: set[str], names: set[str]) -> bool:
    if isinstance(node, ast.Name) and node.id in names:
        return True
    return isinstance(node, (ast.Name, ast.Attribute)) and key_of(node) in keys


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (each for each in ast.walk(node) if isinstance(each, ast.Name))


def _binds(statement: ast.AST, name: str) -> bool:
    """Whether it may give a variable another value, or a part of it."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        if any(each.id == name for target in targets for each in _names(target)):
            return True
        is_named = isinstance(node, (*FUNCTIONS, ast.ClassDef, ast.ExceptHandler))
        if is_named and node.name == name:  # type: ignore[attr-defined]
            return True
        if isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names:
            return True
        taken = node.names if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        if name in [(each.asname or each.name).partition(".")[0] for each in taken]:
            return True
    return False


def _is_given_away(statement: ast.AST, name: str) -> bool:
    """Whether something is done with a variable that may change what it holds, in its place."""
    for node in ast.walk(statement):
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and _has(call, name) and not _only_keeps(call, name):
            return True
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_method and node.func.attr.endswith("_") and _has(node, name):  # type: ignore[attr-defined]
            return True
    return False


def _has(node: ast.AST, name: str) -> bool:
    return any(each.id == name for each in _names(node))


def _only_keeps(call: ast.Call, name: str) -> bool:
    """Whether a variable is only printed, or put into a list."""
    is_kept = _attribute_of(call.func) == "append" and not _has(call.func, name)
    return key_of(call.func) == "print" or is_kept


def _heads(node: ast.AST) -> list[ast.AST]:
    """What is computed before the body of a statement, such as `while (x := f(x)):`."""
    if isinstance(node, (ast.If, ast.While)):
        return [node.test]
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return [*node.items]
    return [node.subject] if isinstance(node, ast.Match) else []


class _Reader:
    """Reads one value. `models`: the calls of the model that went into it."""

    def __init__(self, text: Text, models: Collection[ast.AST]) -> None:
        self.models: set[ast.AST] = set()
        self.called: set[str] = set()  # functions of the program
        self._text = text
        self._known = models
        self._left = _MOST_NODES
        self._given: dict[ast.Name, ast.expr | None] = {}

    def value_of(self, name: ast.Name) -> ast.expr | None:
        """What a variable holds, where only one value is possible. None: not known."""
        if name not in self._given:
            self._given[name] = self._search(name)
        return self._given[name]

    def _search(self, name: ast.Name) -> ast.expr | None:
        below: ast.AST = name
        for parent in self._text.above(name):
            made = parent.generators if isinstance(parent, _COMPREHENSIONS) else []
            if any(_binds(each.target, name.id) for each in made):
                return None
            if isinstance(below, ast.stmt):
                blocks = [getattr(parent, field, []) for field in ("body", "orelse", "finalbody")]
                block = next((b for b in blocks if isinstance(b, list) and below in b), None)
                before = [] if block is None else block[: block.index(below)]
                for statement in reversed(before):
                    if _is_given_away(statement, name.id):
                        return None
                    if _binds(statement, name.id):
                        return _assigned(statement, name.id)
            if isinstance(parent, (*FUNCTIONS, ast.Lambda, ast.ClassDef, ast.Module)):
                return None
            if isinstance(parent, _LOOPS) and _binds(parent, name.id):
                return None
            if any(_binds(each, name.id) for each in _heads(parent)):
                return None
            below = parent
        return None

    def _is_data(self, value: ast.expr) -> bool:
        """A part of a variable that no model has a part in, as far as the text says."""
        base = _base_of(value)
        return isinstance(base, ast.Name) and base.id not in self._of_models()

    def _of_models(self) -> set[str]:
        """Variables of the file that hold a model, or may hold what one gave."""
        called = {key_of(node.func) for node in self._known if isinstance(node, ast.Call)} - {""}
        found: set[str] = set()
        held: list[tuple[ast.AST, list[ast.AST]]] = []
        for node in ast.walk(self._text.tree):
            if isinstance(node, ast.Assign):
                held.append((node.value, [*node.targets]))
            elif isinstance(node, ast.Call) and node.args and _attribute_of(node.func) == "append":
                held.append((node.args[0], [node.func]))
        for _ in range(_MOST_LINKS):
            before = len(found)
            for value, holders in held:
                if any(_is_among(each, called, found) for each in ast.walk(value)):
                    found.update(each.id for holder in holders for each in _names(holder))
            if len(found) == before:
                break
        return found

    def _is_input(self, value: ast.expr, model: ast.AST | None) -> bool:
        """Whether a value is a part of what the model is given, as a column of it."""
        if not isinstance(model, ast.Call) or isinstance(value, ast.Name):
            return False
        bases = {ast.dump(_base_of(argument, through_names=False)) for argument in model.args}
        alike = [ast.dump(argument) for argument in model.args]
        return (
            ast.dump(value) not in alike and ast.dump(_base_of(value, through_names=False)) in bases
        )

    def read(self, value: ast.expr | None) -> Meaning | None:
        """What a value is. None: not known."""
        self._left -= 1
        if value is None or self._left < 0:
            return None
        if value in self._known:
            return Meaning(_OUTPUT, EACH, value)
        if isinstance(value, ast.Name):
            return self.read(self.value_of(value))
        if isinstance(value, ast.BinOp):
            return self._of_operation(value)
        if not isinstance(value, ast.Call):
            return None
        if isinstance(value.func, ast.Attribute) and not _is_of_torch(value):
            return self._of_call(value.func.attr, value.func.value, value.args, value)
        if value.args and (key_of(value.func) == "abs" or _is_of_torch(value)):
            name = key_of(value.func).rpartition(".")[2]
            return self._of_call(name, value.args[0], value.args[1:], value)
        return None

    def _of_operation(self, value: ast.BinOp) -> Meaning | None:
        left = self.read(value.left)
        if isinstance(value.op, ast.Sub):
            other = value.left if left is None else value.right
            one = self.read(value.right) if left is None else left
            if one is None or one.of != _OUTPUT or self._is_input(other, one.model):
                return None
            return Meaning(_ERROR, EACH, one.model) if self._is_data(other) else None
        if left is None:
            return None
        if isinstance(value.op, ast.Pow) and isinstance(value.right, ast.Constant):
            return _power(left, value.right.value)
        is_product = isinstance(value.op, ast.Mult) and left.of == _ERROR
        if is_product and ast.dump(value.left) == ast.dump(value.right):
            return Meaning(SQUARES, EACH, left.model)
        return None

    def _of_call(
        self, name: str, of: ast.expr, args: list[ast.expr], call: ast.Call
    ) -> Meaning | None:
        inner = self.read(of)
        if inner is None:
            return None
        has_more = bool(args or call.keywords)
        if name in _SAME or (name in _PLAIN and not has_more):
            return inner
        is_error = inner.of in (SQUARES, ABSOLUTES) and inner.how in (EACH, SEVERAL)
        if name == MEAN and is_error and has_more:
            return inner._replace(how=SEVERAL)
        if name == "pow" and len(args) == 1 and isinstance(args[0], ast.Constant):
            return _power(inner, args[0].value)
        if has_more:
            return None
        if name in ("square", "sqrt"):
            return _power(inner, 2 if name == "square" else 0.5)
        if name == "abs":
            return inner._replace(of=ABSOLUTES) if inner.of == _ERROR else None
        if is_error and (name == MEAN or (name == SUM and inner.how == EACH)):
            return inner._replace(how=name)
        return None

    def form_of(self, value: ast.AST) -> str | None:
        """How a value is computed of a model and of data, whatever the data is called.

        None: too much of it. Notes what is called on the way.
        """
        self._left -= 1
        if self._left < 0:
            return None
        if value in self._known:
            self.models.add(value)
            return _MODEL
        if isinstance(value, ast.Name):
            given = self.value_of(value)
            form = None if given is None else self._form_apart(given)
            return form if form is not None and _MODEL in form else _DATA
        if isinstance(value, (ast.Attribute, ast.Subscript)):
            inner = self.form_of(value.value)
            if inner is None or inner == _DATA:
                return inner
            part = value.attr if isinstance(value, ast.Attribute) else ast.dump(value.slice)
            return f"{inner}[{part}]"
        if isinstance(value, ast.Call):
            return self._form_of_call(value)
        if isinstance(value, ast.Constant):
            return repr(value.value)
        parts = [self.form_of(each) for each in ast.iter_child_nodes(value)]
        if None in parts:
            return None
        return f"{type(value).__name__}({', '.join(map(str, parts))})"

    def _form_apart(self, value: ast.expr) -> str | None:
        """What is called counts only where the model has a part in it."""
        called, models = set(self.called), set(self.models)
        form = self.form_of(value)
        if form is None or _MODEL not in form:
            self.called, self.models = called, models
        return form

    def _form_of_call(self, value: ast.Call) -> str | None:
        given = [self.form_of(each) for each in value.args]
        given += [self.form_of(each.value) for each in value.keywords]
        names = [f"{each.arg}=" for each in value.keywords]
        callee = value.func
        is_method = isinstance(callee, ast.Attribute) and not _is_of_torch(value)
        if isinstance(callee, ast.Attribute) and is_method and _is_of_value(callee):
            name, of = callee.attr, self.form_of(callee.value)
            if name in _PLAIN | {"item"} and not given:
                return of
            given.insert(0, of)
        else:
            name = key_of(value.func)
            if not name:
                return None
            if not _is_of_torch(value):
                self.called.add(name)
                inside = None if _MODEL in "".join(map(str, given)) else self._model_inside(callee)
                if inside is not None:
                    self.models.add(inside)
                    name += f"[{_MODEL}]"
        if None in given:
            return None
        return f"{name}({', '.join([*names, *map(str, given)])})"

    def _model_inside(self, callee: ast.expr) -> ast.AST | None:
        """The only call of the model in a function of the program, whose name is the only one.

        None: it is another function, or it may compute something else in an evaluation.
        """
        name = _attribute_of(callee) or key_of(callee)
        found = [
            node
            for node in ast.walk(self._text.tree)
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name
        ]
        if len(found) != 1 or isinstance(found[0], ast.ClassDef) or found[0].decorator_list:
            return None
        models = [node for node in self._known if self._text.scope_of(node) is found[0]]
        return models[0] if len(models) == 1 and not _branches(found[0]) else None


def _branches(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it goes different ways by what it is given, or by the mode of a model."""
    own = function.args
    given = {each.arg for each in (*own.posonlyargs, *own.args, *own.kwonlyargs)} - {"self"}
    return any(
        _attribute_of(each) == "training" or (isinstance(each, ast.Name) and each.id in given)
        for node in ast.walk(function)
        if isinstance(node, (ast.If, ast.IfExp, ast.While))
        for each in ast.walk(node.test)
        if isinstance(each, ast.expr)
    )


def _assigned(statement: ast.AST, name: str) -> ast.expr | None:
    """The value of a plain assignment to a variable."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return statement.value if key_of(statement.targets[0]) == name else None
    if isinstance(statement, ast.AnnAssign) and key_of(statement.target) == name:
        return statement.value
    return None


def _power(of: Meaning, exponent: object) -> Meaning | None:
    if of.of == _ERROR and exponent in (2, 2.0):
        return of._replace(of=SQUARES)
    if of.of == SQUARES and of.how == MEAN and exponent == 0.5:
        return of._replace(how=ROOT)
    return None
