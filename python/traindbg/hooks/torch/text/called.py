"""What a program calls the data that it evaluates: whether it is held out, as it says itself.

    for x, y in valid_loader:        # a loader,
        model(x)
    score(net, x_val, y_val)         # or a tensor, here of a function that calls the model

A name tells what is intended. It is looked for in the text, from the place where a loader is asked
for its batches, or where the model is called, back through parameters of functions and variables
with one value. A name of the training on the way says that it is the training's. No code of the
program runs, no variable of it is read, and nothing of it is kept. Before Python 3.11 the text
does not tell: code has no columns.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
import weakref
from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.base.sources import USERS, path_of, sources
from traindbg.hooks.torch.text.rounds_text import Scope, Text, argument_of, assigned, key_of, read

if TYPE_CHECKING:
    from types import CodeType, FrameType

_MOST_FRAMES = 64
_MOST_USERS = 4  # functions of the program, from the innermost outwards
_MOST_LINKS = 8  # from a name to the one that tells
_MOST_ANSWERS = 64
_MOST_TEXTS = 8
_CODE_UNIT = 2  # bytes

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_OF_DATA = "(?:set|data|dataset|loader|dataloader|iter|dl|ds|df|x)?"
_HELD_OUT = re.compile(f"x?(?:val|valid|validation|test|testing|te|heldout|holdout){_OF_DATA}")
_TRAINED = re.compile(f"x?train.*|x?(?:trn|tr|fit|seen|all|full|whole|every){_OF_DATA}")
# Of a tensor, a value or one that is as it should be may be called so.
_OF_MORE = frozenset({"val", "valid", "test"})
_SPLITTING = re.compile("split", re.IGNORECASE)

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CALLED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_HELD, _OF_TRAINING, _NEUTRAL = "held out", "training", ""


def kind_of(name: str) -> str:
    """What a name says: `_HELD`, `_OF_TRAINING` or `_NEUTRAL`."""
    words = [word.lower() for word in _WORD.findall(name)]
    if any(map(_TRAINED.fullmatch, words)):
        return _OF_TRAINING
    return _HELD if any(map(_HELD_OUT.fullmatch, words)) else _NEUTRAL


def _names_in(node: ast.AST) -> list[str]:
    """Names of data in an expression; what splits it has the names of both."""
    called = {
        id(each.func)
        for each in ast.walk(node)
        if isinstance(each, ast.Call) and _SPLITTING.search(key_of(each.func))
    }
    found = []
    for each in ast.walk(node):
        if id(each) in called:
            continue
        if isinstance(each, ast.Name):
            found.append(each.id)
        elif isinstance(each, ast.Attribute):
            found.append(each.attr)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.append(each.value)
    return found


def _says_training(node: ast.AST) -> bool:
    return any(kind_of(name) == _OF_TRAINING for name in _names_in(node))


def _named(node: ast.expr) -> str:
    """What a variable, an attribute or an item of a dict is called."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.slice.value if isinstance(node.slice.value, str) else ""
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _inner(node: ast.expr) -> ast.expr | None:
    """What an expression is a part or another form of."""
    if isinstance(node, (ast.Attribute, ast.Subscript)):
        return node.value
    if isinstance(node, ast.Call):
        if node.args:
            return node.args[0]
        return node.func.value if isinstance(node.func, ast.Attribute) else None
    return None


def is_called_held_out(value: ast.expr | None, scope: Scope, is_loader: bool) -> bool:
    """Whether the data that an expression stands for has a name that says so, and no other."""
    for _ in range(_MOST_LINKS):
        if value is None or _says_training(value):
            return False
        name = _named(value)
        if kind_of(name) == _HELD and (is_loader or name.lower() not in _OF_MORE):
            made = assigned(scope.node, name) or assigned(scope.text.tree, name)
            return not any(map(_says_training, made))
        if isinstance(value, ast.Name):
            given = _given_to(name, scope)
            if given is None:
                return False
            value, scope = given
        else:
            value = _inner(value)
    return False


def _given_to(name: str, scope: Scope) -> tuple[Any, Scope] | None:
    """What the only value of a variable is, and where that stands."""
    bound = scope.text.bindings(name, scope.node)
    if len(bound) == 1 and isinstance(bound[0], ast.arg):
        return argument_of(name, scope)
    values = assigned(scope.node, name)
    if len(bound) == 1 and len(values) == 1:
        return values[0], scope
    if not bound and isinstance(scope.node, _CALLED):
        outer = Scope(scope.text, scope.text.tree)
        values = assigned(outer.node, name)
        return (values[0], outer) if len(values) == 1 else None
    return None


def _node_at(text: Text, code: CodeType, instruction: int) -> ast.AST | None:
    """The call, or what is iterated over, that code is at."""
    tell = getattr(code, "co_positions", None)
    places = () if tell is None else tell()
    place = next(itertools.islice(places, instruction // _CODE_UNIT, None), None)
    if place is None or None in place:
        return None
    line, last_line, column, last_column = place
    kinds = (ast.expr, ast.For, ast.AsyncFor)
    for node in ast.walk(text.tree):
        if not isinstance(node, kinds) or (node.lineno, node.col_offset) != (line, column):
            continue
        if (node.end_lineno, node.end_col_offset) == (last_line, last_column):
            return node
    return None


class Called:
    """Of the process. Its calls come from the training's threads."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Another recording begins: a notebook's module may be another one by now."""
        self._iterator: weakref.ref[Any] | None = None  # the last one that a loader began
        self._is_held_out = False  # its data is
        # By ids of codes, which are kept for that: the hash of one is made of all its constants.
        self._answers: dict[tuple[int, ...], bool] = {}
        self._codes: list[CodeType] = []
        self._texts: dict[int, Text | None] = {}  # for each function: it must be of it

    def begins(self, loader: Any, iterator: Any) -> None:
        """A loader is asked for its batches."""
        self._iterator = None
        if getattr(loader, "_iterator", None) is not None:
            return  # kept for the next pass: when this one is over does not show
        self._iterator = weakref.ref(iterator)
        self._is_held_out = self._asks(is_loader=True)

    def is_held_out(self) -> bool:
        """Whether what a model is given now is: of the loader under way, or by its own name."""
        if self._iterator is not None and self._iterator() is not None:
            return self._is_held_out
        return self._asks(is_loader=False)

    def _asks(self, is_loader: bool) -> bool:
        frames = _frames()
        places = ((id(frame.f_code), frame.f_lasti) for frame in frames)
        key = (int(is_loader), *itertools.chain.from_iterable(places))
        if key not in self._answers:
            if len(self._answers) >= _MOST_ANSWERS:
                return False
            self._answers[key] = False
            self._codes += [frame.f_code for frame in frames]
            self._answers[key] = self._answer(frames, is_loader)
        return self._answers[key]

    def _text(self, frame: FrameType) -> Text | None:
        code = frame.f_code
        if id(code) not in self._texts:
            if len(self._texts) >= _MOST_TEXTS:
                return None
            self._texts[id(code)] = read(path_of(code.co_filename), frame.f_globals, [code])
        return self._texts[id(code)]

    def _answer(self, frames: list[FrameType], is_loader: bool) -> bool:
        scope: Scope | None = None
        node: ast.AST | None = None  # what the outer one is at
        for frame in reversed(frames):
            code, text = frame.f_code, self._text(frame)
            function = None if text is None else text.function_of(code)
            if text is None or function is None:
                scope = node = None
                continue
            call = node if isinstance(node, ast.Call) and _calls(node, code.co_name) else None
            scope = Scope(text, function, None if call is None else scope, call)
            node = _node_at(text, code, frame.f_lasti)
        if scope is None or node is None:
            return False
        if is_loader:
            return is_called_held_out(_iterated(node), scope, is_loader)
        if not isinstance(node, ast.Call) or not node.args:
            return False
        return is_called_held_out(node.args[0], scope, is_loader)


def _calls(node: ast.Call, name: str) -> bool:
    func = node.func
    return (func.attr if isinstance(func, ast.Attribute) else key_of(func)) == name


def _iterated(node: ast.AST) -> ast.expr | None:
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return node.iter
    if isinstance(node, _COMPREHENSIONS):
        return node.generators[0].iter
    return node if isinstance(node, ast.expr) else None


def _frames() -> list[FrameType]:
    """Of the program, from the innermost outwards; PyTorch's and libraries' in between are not."""
    found: list[FrameType] = []
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None or len(found) == _MOST_USERS:
            break
        if sources.owner(frame.f_code.co_filename) == USERS:
            found.append(frame)
        frame = frame.f_back
    return found


called = Called()
