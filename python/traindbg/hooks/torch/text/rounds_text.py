"""The text of a program's file: where in it a line is, and which number a name stands for.

Nothing is run: the text is parsed by `ast`, and what cannot be told with certainty is not told. Of
what the program holds in memory only variables of modules are looked at, whole numbers among them
and among plain attributes; no property and no local variable of a function.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import time
import warnings
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch.text.flags import without_dead_branches

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
_CALLED = (*FUNCTIONS, ast.Lambda)
_SCOPES = (*_CALLED, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_IN_ONE_LINE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
_MOST_BYTES = 256 << 10
_BEGIN = time.time()  # of the process, nearly
_MOST_LINKS = 12  # from a name to the number that it stands for
_LARGEST = 1 << 53
_HARMLESS = ("torch.", "no_grad", "enable_grad", "record", "staticmethod", "classmethod")
_TELLING = ("min", "max", "int")
_SETTING = ("setattr", "vars", "__dict__", "__setattr__")
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__getattr__", "__getattribute__"})
_NO_FIELDS = ("ClassVar", "InitVar", "KW_ONLY")


def key_of(node: ast.AST | None) -> str:
    """A variable, or an attribute of one: "best", "self.best". Empty: something else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = key_of(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


def node_name(node: ast.Name | ast.Attribute) -> str:
    """The last part of it."""
    return node.id if isinstance(node, ast.Name) else node.attr


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """All below a module, function or class, but nothing inside of functions and classes in it."""
    waiting = list(ast.iter_child_nodes(scope))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))


def pairs(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment puts where, also of several at once."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        value = node.value
        if not isinstance(target, (ast.Tuple, ast.List)):
            yield target, value
        elif isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
            yield from zip(target.elts, value.elts, strict=True)


def _parameters(function: Any) -> list[ast.arg]:
    given = function.args
    some = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return [*some, *(each for each in (given.vararg, given.kwarg) if each is not None)]


class Scope(NamedTuple):
    """A module or function, and the call by which it runs, as far as that is known."""

    text: Text
    node: Any
    caller: Scope | None = None
    call: ast.Call | None = None


class Text:
    """A file that is parsed. `variables`: of the module that it is, as they are now."""

    def __init__(self, tree: ast.Module, name: str, variables: Mapping[str, Any]) -> None:
        self.tree = tree
        self.name = name
        self.variables = variables
        self.reached = 0  # the line of the module's own that training was in; 0: not known
        self._parents: dict[ast.AST, ast.AST] = {
            child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)
        }

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node lies in, from the inside out."""
        parent = self._parents.get(node)
        while parent is not None:
            yield parent
            parent = self._parents.get(parent)

    def scope_of(self, node: ast.AST) -> Any:
        """The function that a node stands in, or the module."""
        kinds = (*_CALLED, ast.Module)
        return next((each for each in self.above(node) if isinstance(each, kinds)), self.tree)

    def class_of(self, function: ast.AST) -> ast.ClassDef | None:
        """The class that it is a method of."""
        parent = self._parents.get(function)
        return parent if isinstance(parent, ast.ClassDef) else None

    def function_of(self, code: CodeType) -> Any:
        """The function, or the module, that a code object was made of. None: not known."""
        if code.co_name == "<module>":
            return self.tree
        found = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, FUNCTIONS)
            and node.name == code.co_name
            and min([node.lineno, *(each.lineno for each in node.decorator_list)])
            == code.co_firstlineno
        ]
        return found[0] if len(found) == 1 else None

    def statements_at(self, scope: Any, line: int) -> list[ast.stmt]:
        """The statement at a line, after those in whose bodies it lies, from the outside in.

        Empty where there is no such statement, or it cannot be told which it is.
        """
        path: list[ast.stmt] = []
        bodies = [scope.body]
        while bodies:
            inside = [
                node
                for body in bodies
                for node in body
                if node.lineno <= line <= (node.end_lineno or node.lineno)
            ]
            if len(inside) > 1:  # one behind the other
                are_calls = all(isinstance(node, _IN_ONE_LINE) for node in inside)
                return [*path, inside[-1]] if are_calls else []
            if not inside:
                break
            path.extend(inside)
            node = inside[0]
            if isinstance(node, _SCOPES):
                return []
            bodies = [getattr(node, field, []) for field in ("body", "orelse", "finalbody")]
            bodies += [each.body for each in getattr(node, "handlers", [])]
            bodies += [each.body for each in getattr(node, "cases", [])]
        return path

    def is_in_comprehension(self, statement: ast.stmt, line: int) -> bool:
        """Whether a call at this line may be made several times by the statement."""
        return any(
            isinstance(node, (*_COMPREHENSIONS, ast.Lambda))
            and node.lineno <= line <= (node.end_lineno or node.lineno)
            for node in ast.walk(statement)
            if not isinstance(node, ast.stmt) or node is statement
        )

    def bindings(self, name: str, scope: Any) -> list[ast.AST]:
        """Where a scope gives a name a value; a parameter among them."""
        found: list[ast.AST] = []
        if isinstance(scope, _CALLED):
            found += [each for each in _parameters(scope) if each.arg == name]
        for node in own_nodes(scope):
            is_named = isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name
            if isinstance(node, ast.Name):
                is_named = node.id == name and not isinstance(node.ctx, ast.Load)
                parent = self._parents[node]
                is_named = is_named and not isinstance(parent, ast.comprehension)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                given = {each.asname or each.name.partition(".")[0] for each in node.names}
                may_be_given = "*" in given and (name in self.variables or not self.variables)
                is_named = name in given or may_be_given
            elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)):
                is_named = node.name == name
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                is_named = name in node.names
            if is_named:
                found.append(node)
        return found

    def is_changed_elsewhere(self, name: str) -> bool:
        """Whether functions give a module's variable another value."""
        words = (ast.Global, ast.Nonlocal)
        return any(isinstance(n, words) and name in n.names for n in ast.walk(self.tree))

    def may_change(self, owner: ast.ClassDef, attribute: str) -> bool:
        """Whether something may set an attribute of what is of a class."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and owner.name in map(key_of, node.bases):
                return True
            if isinstance(node, (ast.Name, ast.Attribute)) and node_name(node) in _SETTING:
                return True
            if isinstance(node, ast.Attribute) and node.attr == attribute:
                if isinstance(node.ctx, ast.Load):
                    continue
                method = self.scope_of(node)
                is_of_another = key_of(node.value) == self.self_of(method)
                if not is_of_another or self.class_of(method) is owner:
                    return True
        return False

    def calls_of(self, name: str) -> list[ast.Call]:
        """All calls in this file of what has a name."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call)
            and (isinstance(node.func, ast.Name) and node.func.id == name)
        ]

    def call_at(self, scope: Any, line: int, name: str) -> ast.Call | None:
        """The only call at a line of a function or method of this name."""
        found = [
            node
            for node in own_nodes(scope)
            if isinstance(node, ast.Call)
            and getattr(node.func, "attr", getattr(node.func, "id", "")) == name
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        return found[0] if len(found) == 1 else None

    def class_named(self, name: str) -> tuple[Text, ast.ClassDef] | None:
        """A class that this file has, or has from another file of the program."""
        nodes = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ClassDef) and node.name == name
        ]
        if nodes:
            return (self, nodes[0]) if len(nodes) == 1 else None
        kind = self.variables.get(name)
        if not issubclass(type(kind), type):  # `isinstance` asks what may be a proxy
            return None
        parts = type.__dict__
        place, own = parts["__module__"].__get__(kind), parts["__name__"].__get__(kind)
        home = sys.modules.get(place) if type(place) is str else None
        if type(home) is not ModuleType or vars(home) is self.variables:
            return None
        path: Any = vars(home).get("__file__")
        codes = [
            each.__code__
            for each in parts["__dict__"].__get__(kind).values()
            if type(each) is FunctionType and each.__code__.co_filename == path
        ]
        text = read(path, vars(home), codes) if codes else None
        return None if text is None else text.class_named(own)

    def class_of_value(self, node: ast.expr, scope: Scope) -> tuple[Text, ast.ClassDef] | None:
        """The class of what a variable holds, by the only place where it is made."""
        name = key_of(node)
        values: list[ast.expr] = [node] if isinstance(node, ast.Call) else []
        if "." in name and name.partition(".")[0] == self.self_of(scope.node):
            owner = self.class_of(scope.node)
            values = [] if owner is None else assigned(owner, name)
            if owner is None or len(stores_of(name.rpartition(".")[2], owner, scope)) != 1:
                return None
            if len(values) == 1 and isinstance(values[0], ast.Name):  # which it was made with
                begins = constructor_of(owner, scope)
                if begins is None or self.scope_of(values[0]) is not begins.node:
                    return None
                return begins.text.class_of_value(values[0], begins)
        elif name and "." not in name:
            where = scope.node
            if not self.bindings(name, where):
                where = self.tree
            if where is not self.tree and name in [each.arg for each in _parameters(where)]:
                value = argument_of(name, scope)
                return None if value is None else value[1].text.class_of_value(value[0], value[1])
            values = assigned(where, name) if len(self.bindings(name, where)) == 1 else []
        made = chosen(values[0], scope) if len(values) == 1 else None
        return self.class_named(key_of(made.func)) if isinstance(made, ast.Call) else None

    def self_of(self, function: Any) -> str:
        """What a method calls its object; a mark that is no name where it is no method."""
        is_method = isinstance(function, FUNCTIONS) and self.class_of(function) is not None
        return function.args.args[0].arg if is_method and function.args.args else "-"


def assigned(area: ast.AST, key: str) -> list[ast.expr]:
    """All that is assigned to a variable in an area, or to an attribute in the whole of a class."""
    nodes = ast.walk(area) if isinstance(area, ast.ClassDef) else own_nodes(area)
    return [value for node in nodes for target, value in pairs(node) if key_of(target) == key]


def read(path: str, variables: Mapping[str, Any], codes: Collection[CodeType]) -> Text | None:
    """A file's text, of branches that a flag decides those that are taken.

    None where it cannot be read, or is not what these codes were made of.
    """
    try:
        if not path.endswith(".py") or os.path.getsize(path) > _MOST_BYTES:
            return None
        # Functions alone do not tell their defaults, which are the module's.
        is_whole = any(code.co_name == "<module>" for code in codes)
        if not is_whole and os.path.getmtime(path) > _BEGIN:
            return None
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python told the user of them before
            tree = ast.parse(file.read(), path)
            known = set(_codes_in(compile(tree, path, "exec", dont_inherit=True)))
        if not known.issuperset(codes):
            return None
        tree = without_dead_branches(tree, variables)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Text(tree, os.path.basename(path), variables)


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)


# Numbers.


def number_of(node: ast.AST | None, scope: Scope, links: int = 0) -> int | None:
    """The whole number that an expression stands for. None: that cannot be told."""
    value = _value_of(node, scope, links)
    return value if type(value) is int and abs(value) < _LARGEST else None


def decimal_of(node: ast.AST | None, scope: Scope) -> float | None:
    """The number that an expression stands for. None: that cannot be told."""
    value = _value_of(node, scope, 0)
    return float(value) if type(value) in (int, float) else None


def _value_of(node: ast.AST | None, scope: Scope, links: int) -> Any:
    if node is None or links > _MOST_LINKS:
        return None
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value_of(node.operand, scope, links + 1)
        return -value if type(value) in (int, float) else None
    if isinstance(node, ast.IfExp) or (isinstance(node, ast.Subscript) and _is_pick(node)):
        return _value_of(chosen(node, scope, links + 1), scope, links + 1)
    if isinstance(node, (ast.Compare, ast.BoolOp, ast.UnaryOp)):
        return truth_of(node, scope, links + 1)
    if isinstance(node, ast.BinOp):
        return _computed(node, scope, links)
    if isinstance(node, ast.Call):
        name = key_of(node.func)
        if name not in _TELLING or node.keywords or scope.text.bindings(name, scope.text.tree):
            return None
        values = [number_of(each, scope, links + 1) for each in node.args]
        known = [value for value in values if value is not None]
        if not known or len(known) < len(values) or (name == "int") != (len(known) == 1):
            return None
        return max(known) if name == "max" else min(known)
    if isinstance(node, ast.Name):
        return _of_name(node.id, scope, links)
    if isinstance(node, ast.Attribute):
        return _of_attribute(node, scope, links)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        held = _object_of(node.value, scope, links + 1)
        is_stored = any(
            isinstance(other, ast.Subscript)
            and not isinstance(other.ctx, ast.Load)
            and isinstance(other.slice, ast.Constant)
            and other.slice.value == node.slice.value
            for other in ast.walk(scope.text.tree)
        )
        return None if type(held) is not dict or is_stored else held.get(node.slice.value)
    return None


def word_of(node: ast.AST | None, scope: Scope) -> str | None:
    """The word that an expression stands for. None: that cannot be told."""
    value = _value_of(node, scope, 0)
    return value if type(value) is str else None


def _is_pick(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict)


def chosen(node: ast.expr, scope: Scope, links: int = 0) -> ast.expr | None:
    """Of `one if test else another`, or of `{"one": this, "two": that}[name]`, the one that it is.

    None: that cannot be told.
    """
    while isinstance(node, ast.IfExp) or _is_pick(node):
        found = _picked(node, scope, links) if isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.IfExp):
            test = truth_of(node.test, scope, links)
            found = None if test is None else node.body if test else node.orelse
        if found is None:
            return None
        node = found
    return node


def _picked(node: ast.Subscript, scope: Scope, links: int) -> ast.expr | None:
    held = node.value
    name = _value_of(node.slice, scope, links + 1)
    if not isinstance(held, ast.Dict) or type(name) not in (str, int, bool):
        return None
    if not all(isinstance(key, ast.Constant) for key in held.keys):
        return None
    values = [
        value
        for key, value in zip(held.keys, held.values, strict=True)
        if isinstance(key, ast.Constant) and type(key.value) is type(name) and key.value == name
    ]
    return values[0] if len(values) == 1 else None


def truth_of(test: ast.expr, scope: Scope, links: int = 0) -> bool | None:
    """Whether a test holds. None: that cannot be told."""
    if links > _MOST_LINKS:
        return None
    if isinstance(test, ast.UnaryOp):
        found = truth_of(test.operand, scope, links + 1) if isinstance(test.op, ast.Not) else None
        return None if found is None else not found
    if isinstance(test, ast.BoolOp):
        truths = [truth_of(each, scope, links + 1) for each in test.values]
        is_and = isinstance(test.op, ast.And)
        if (not is_and) in truths:  # decides it alone
            return not is_and
        return None if None in truths else is_and
    if isinstance(test, ast.Compare):
        return _truth_of_comparison(test, scope, links)
    value = _object_of(test, scope, links + 1)
    value = _value_of(test, scope, links + 1) if value is None else value
    return value if type(value) is bool else None


def _truth_of_comparison(test: ast.Compare, scope: Scope, links: int) -> bool | None:
    """Of words, whole numbers and flags that are the same or not."""
    op, right = test.ops[0], test.comparators[0]
    if len(test.ops) > 1 or not isinstance(op, (ast.Eq, ast.NotEq, ast.In, ast.NotIn)):
        return None
    is_among = isinstance(op, (ast.In, ast.NotIn))
    if is_among and not isinstance(right, (ast.Tuple, ast.List, ast.Set)):
        return None
    others = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    values = [_value_of(each, scope, links + 1) for each in (test.left, *others)]
    if any(type(each) not in (str, int, bool) for each in values):
        return None
    return (values[0] in values[1:]) == isinstance(op, (ast.Eq, ast.In))


def _is_never_reached(node: ast.AST, scope: Scope) -> bool:
    """Whether it lies in the branch of an `if`, of either kind, that is known not to be taken.

    Of the function alone that it stands in.
    """
    below = node
    for above in scope.text.above(node):
        if isinstance(above, (*FUNCTIONS, ast.ClassDef)):
            break
        if isinstance(above, (ast.If, ast.IfExp)) and below is not above.test:
            test = truth_of(above.test, scope)
            other = above.orelse if test else above.body
            if test is not None and (below in other if isinstance(other, list) else below is other):
                return True
        below = above
    return False


def taken(values: list[ast.expr], scope: Scope) -> list[ast.expr]:
    """Of what a name is set to, without those below an `if` that is known to go another way."""
    return [value for value in values if not _is_never_reached(value, scope)]


def _computed(node: ast.BinOp, scope: Scope, links: int) -> int | None:
    left = number_of(node.left, scope, links + 1)
    right = number_of(node.right, scope, links + 1)
    if left is None or right is None:
        return None
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mult):
        return left * right
    if isinstance(node.op, ast.FloorDiv) and right != 0:
        return left // right
    return None


def _of_name(name: str, scope: Scope, links: int) -> Any:
    source = _source_of(name, scope)
    if source is None:
        return None
    value, where = source
    if where is None:
        return value
    return _value_of(value, where, links + 1)


def _source_of(name: str, scope: Scope) -> tuple[Any, Scope | None] | None:
    """An expression with its scope that a variable's value comes from, or the value and None."""
    text, where = scope.text, scope.node
    if isinstance(where, _CALLED):
        if any(isinstance(n, ast.Nonlocal) and name in n.names for n in ast.walk(text.tree)):
            return None
        found = text.bindings(name, where)
        if len(found) == 1 and isinstance(found[0], ast.arg):
            return argument_of(name, scope)
        if found:
            values = assigned(where, name)
            return (values[0], scope) if len(found) == 1 and len(values) == 1 else None
        outer = text.scope_of(where)
        if outer is not text.tree:
            return _source_of(name, Scope(text, outer))
    found = text.bindings(name, text.tree)
    if text.is_changed_elsewhere(name) or not found:
        return None
    values = assigned(text.tree, name)
    if len(found) == 1 and len(values) == 1 and isinstance(values[0], ast.Constant):
        return values[0], Scope(text, text.tree)
    lines = [getattr(node, "lineno", 0) for node in found]
    if name in text.variables and (len(found) == 1 or max(lines) < text.reached):
        under_way = [
            (node.lineno, node.end_lineno or node.lineno)
            for node in own_nodes(text.tree)
            if isinstance(node, LOOPS)
            and node.lineno <= text.reached <= (node.end_lineno or node.lineno)
        ]
        # What they change has now the value of their end.
        inside = any(begin <= line <= end for begin, end in under_way for line in lines)
        return None if inside else (text.variables[name], None)
    is_alone = len(found) == 1 and len(values) == 1
    return (values[0], Scope(text, text.tree)) if is_alone else None


def argument_of(name: str, scope: Scope) -> tuple[Any, Scope] | None:
    """What a parameter was given by the call, or its default."""
    function, call = scope.node, scope.call
    if call is None or scope.caller is None or not isinstance(function, _CALLED):
        return None
    decorators = [ast.unparse(each) for each in getattr(function, "decorator_list", [])]
    if any(not any(word in each for word in _HARMLESS) for each in decorators):
        return None
    if any(isinstance(each, ast.Starred) for each in call.args) or any(
        each.arg is None for each in call.keywords
    ):
        return None
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value, scope.caller
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    defaults = dict(zip(reversed(names), reversed(function.args.defaults), strict=False))
    own = (each.arg for each in function.args.kwonlyargs)
    defaults |= {n: d for n, d in zip(own, function.args.kw_defaults, strict=True) if d is not None}
    is_static = any("staticmethod" in each for each in decorators)
    skipped = int(scope.text.class_of(function) is not None and not is_static)
    if name in names and 0 <= names.index(name) - skipped < len(call.args):
        return call.args[names.index(name) - skipped], scope.caller
    default = defaults.get(name)
    return None if default is None else (default, Scope(scope.text, scope.text.tree))


def _of_attribute(node: ast.Attribute, scope: Scope, links: int) -> Any:
    text = scope.text
    if isinstance(node.value, ast.Name) and node.value.id == text.self_of(scope.node):
        return _of_self(node.attr, scope, links)
    holder = _object_of(node.value, scope, links + 1)
    if holder is not None:
        return _plain(holder, node.attr, text)
    values = [
        _field(call, node.attr, where, scope, links + 1)
        for call, where in _made_by(node.value, scope)
    ]
    return values[0] if values and all(_is_same(values[0], each) for each in values[1:]) else None


def _is_same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and type(one) in (bool, int, float, str) and bool(one == other)


def _made_by(node: ast.expr, scope: Scope) -> list[tuple[ast.Call, Scope]]:
    """The calls of which one made what a variable of a function holds. Empty: not known."""
    value: Any = node
    where: Scope | None = scope
    for _ in range(_MOST_LINKS):
        if where is None or not isinstance(value, ast.Name):
            break
        source = _source_of(value.id, where)
        if source is None:
            return []
        value, where = source
    if where is None:
        return []
    one = chosen(value, where) if isinstance(value, ast.IfExp) else value
    either = [value.body, value.orelse] if one is None else [one]
    calls = [call for call in either if isinstance(call, ast.Call)]
    return [(call, where) for call in calls] if len(calls) == len(either) else []


def _texts(scope: Scope | None) -> Iterator[Text]:
    """Of a function, and of those that called it."""
    while scope is not None:
        yield scope.text
        scope = scope.caller


def _field(call: ast.Call, name: str, scope: Scope, reader: Scope, links: int) -> Any:
    """A field of what a call of a dataclass makes, or of a class of constants.

    Of a call in `scope`; `reader`: who asks.
    """
    found = scope.text.class_named(key_of(call.func))
    if found is None or links > _MOST_LINKS:
        return None
    text, owner = found
    is_data = [_last_name(each) for each in owner.decorator_list] == ["dataclass"]
    if owner.bases or owner.keywords or bool(owner.decorator_list) != is_data:
        return None
    own = {node.name for node in owner.body if isinstance(node, FUNCTIONS)}
    if name in own or own & _MAKING:
        return None
    users = [text, *_texts(scope), *_texts(reader)]
    if any(user.may_change(owner, name) for user in {id(user): user for user in users}.values()):
        return None
    if len(text.bindings(name, owner)) != 1:
        return None
    fields: dict[str, ast.expr | None] = {}
    for node in owner.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            if any(word in ast.unparse(node.annotation) for word in _NO_FIELDS):
                return None
            if isinstance(node.value, ast.Call) and any(
                each.arg in ("init", "kw_only") for each in node.value.keywords
            ):
                return None
            fields[node.target.id] = node.value
        elif isinstance(node, ast.Assign) and not is_data:
            fields.update({each.id: node.value for each in node.targets if type(each) is ast.Name})
    given: ast.expr | None = None
    if not is_data and (call.args or call.keywords):
        return None
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    for position, each in zip(fields, call.args, strict=False):
        given = each if position == name else given
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        given = keyword.value if keyword.arg == name else given
    if given is not None:
        return _value_of(given, scope, links + 1)
    default = fields.get(name)
    if isinstance(default, ast.Call) and _last_name(default) == "field":
        default = next((k.value for k in default.keywords if k.arg == "default"), None)
    if default is None or any(
        isinstance(node, ast.Name) and text.bindings(node.id, owner) for node in ast.walk(default)
    ):
        return None
    return _value_of(default, Scope(text, text.tree), links + 1)


def _last_name(node: ast.expr) -> str:
    """`dataclass` of `@dataclasses.dataclass(frozen=True)`."""
    return key_of(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


def _of_self(name: str, scope: Scope, links: int) -> Any:
    source = set_once(name, scope)
    return None if source is None else _value_of(*source, links + 1)


def set_once(name: str, scope: Scope) -> tuple[ast.expr, Scope] | None:
    """What the constructor alone gives an attribute of `self`, of a class of which one is made."""
    owner = scope.text.class_of(scope.node)
    made = constructor_of(owner, scope)
    if owner is None or made is None:
        return None
    if any(
        isinstance(node, (ast.Name, ast.Attribute)) and node_name(node) in _SETTING
        for node in ast.walk(owner)
    ):
        return None
    begins = made.node
    stores = stores_of(name, owner, scope)
    values = assigned(owner, f"{made.text.self_of(begins)}.{name}")
    if len(stores) != 1 or len(values) != 1 or stores[0] is not begins:
        return None
    return values[0], made


def stores_of(name: str, owner: ast.ClassDef, scope: Scope) -> list[ast.AST]:
    """The functions that may set an attribute of what is of a class."""
    return [
        text.scope_of(node)
        for text in {id(each): each for each in _texts(scope)}.values()
        for node in ast.walk(text.tree)
        if isinstance(node, ast.Attribute)
        and node.attr == name
        and not isinstance(node.ctx, ast.Load)
        and (owner in text.above(node) or key_of(node.value) != text.self_of(text.scope_of(node)))
    ]


def is_base(owner: ast.ClassDef, scope: Scope) -> bool:
    """Whether the program may have a class that is made of it, and does something else."""
    return any(
        isinstance(node, ast.ClassDef) and owner.name in map(key_of, node.bases)
        for text in {id(each): each for each in _texts(scope)}.values()
        for node in ast.walk(text.tree)
    )


def constructor_of(owner: ast.ClassDef | None, scope: Scope) -> Scope | None:
    """`__init__` of a class, as it is called in the only place where such an object is made."""
    if owner is None:
        return None
    begins = [n for n in owner.body if isinstance(n, FUNCTIONS) and n.name == "__init__"]
    user = scope if scope.caller is None else scope.caller  # may be in another file
    while user.caller is not None and user.text.class_of(user.node) is owner:
        user = user.caller  # one of its own methods asks another one
    calls = [
        (text, call)
        for text in {id(each): each for each in _texts(user)}.values()
        for call in text.calls_of(owner.name)
        if not _is_never_reached(call, Scope(text, text.scope_of(call)))
    ]
    if len(begins) != 1 or len(calls) != 1:
        return None
    if is_base(owner, scope):
        return None
    home, call = calls[0]
    made_in = home.scope_of(call)
    # With the call by which that runs, where it is one of those under way.
    where: Scope | None = user
    while where is not None and where.node is not made_in:
        where = where.caller
    return Scope(scope.text, begins[0], where or Scope(home, made_in), call)


def _object_of(node: ast.AST, scope: Scope, links: int) -> Any:
    """What a variable of a module holds, or a plain attribute of such a thing."""
    if links > _MOST_LINKS:
        return None
    if isinstance(node, ast.Name):
        source = _source_of(node.id, scope)
        if source is None:
            return None
        value, where = source
        if where is None:
            return value
        if isinstance(value, (ast.Name, ast.Attribute)):
            return _object_of(value, where, links + 1)
        # A module's own variable, whose value is made by a call.
        is_global = where.node is where.text.tree and where.text is scope.text
        return where.text.variables.get(node.id) if is_global else None
    if isinstance(node, ast.Attribute):
        holder = _object_of(node.value, scope, links + 1)
        return None if holder is None else _plain(holder, node.attr, scope.text)
    return None


def _plain(holder: Any, name: str, text: Text) -> Any:
    """An attribute that is no property, and that the file does not change."""
    looks_up = getattr(type(holder), "__getattribute__", None)
    is_plain = (
        type(holder) in (type, ModuleType, SimpleNamespace) or looks_up is object.__getattribute__
    )
    for node in ast.walk(text.tree):
        if isinstance(node, ast.Attribute) and node.attr == name:
            is_stored = not isinstance(node.ctx, ast.Load)
            function = text.scope_of(node)
            is_made = getattr(function, "name", "") == "__init__"
            is_plain = is_plain and (not is_stored or is_made)
    return inspect.getattr_static(holder, name, None) if is_plain else None
