"""Branches of a text that are never taken, because of a flag that was given once.

    use_schedule = False
    ...
    if use_schedule:
        scheduler.step()

What stands there is not what the program does. A flag is a variable of the module, or an option in
one (`args.use_schedule` of `argparse`), that is true or false, is given a value in one place of the
text outside of loops, and has no other variable of its name beside it. Attributes of other objects
may change without a word in this text: `model.training`, `stopper.early_stop`.
"""

from __future__ import annotations

import argparse
import ast
import types
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OPTIONS = (argparse.Namespace, types.SimpleNamespace)
_ELSEWHERE = ("exec", "globals", "setattr", "vars")  # by these it may be given another value


def without_dead_branches(tree: ast.Module, variables: Mapping[str, Any]) -> ast.Module:
    """The tree, changed in place. `variables`: of the module that it is, as they are now."""
    if variables and any(isinstance(node, (ast.If, ast.IfExp)) for node in ast.walk(tree)):
        flags = _Flags(tree, variables)
        if flags.may_be_known:
            _Pruner(flags).visit(tree)
    return tree


class _Flags:
    """What the tests of a text are, as far as flags say it."""

    def __init__(self, tree: ast.Module, variables: Mapping[str, Any]) -> None:
        self._variables = variables
        nodes = list(ast.walk(tree))
        given = Counter(name for node in nodes for name in _names_given(node))
        names = {node.id for node in nodes if isinstance(node, ast.Name)}
        self._once = {name for name in _given_once(tree.body) if given[name] == 1}
        self._changed = {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        }
        self.may_be_known = bool(self._once) and names.isdisjoint(_ELSEWHERE)

    def value_of(self, test: ast.expr) -> bool | None:
        """None: that is not known."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            value = self.value_of(test.operand)
            return None if value is None else not value
        if isinstance(test, ast.BoolOp):
            values = [self.value_of(each) for each in test.values]
            decisive = isinstance(test.op, ast.Or)
            if decisive in values:
                return decisive
            return None if None in values else not decisive
        value = None
        if isinstance(test, ast.Name) and test.id in self._once:
            value = self._variables.get(test.id)
        elif isinstance(test, ast.Attribute) and test.attr not in self._changed:
            value = self._attribute(test)
        return value if type(value) is bool else None

    def _attribute(self, test: ast.Attribute) -> Any:
        """Read where it is kept: nothing of the user's is called."""
        if not isinstance(test.value, ast.Name) or test.value.id not in self._once:
            return None
        holder = self._variables.get(test.value.id)
        return vars(holder).get(test.attr) if type(holder) in _OPTIONS else None


def _given_once(body: list[ast.stmt]) -> Iterator[str]:
    """The names that statements of a module give, those in its loops left out."""
    for statement in body:
        if isinstance(statement, (*_DEFINITIONS, *_LOOPS)):
            continue
        inside = [getattr(statement, part, []) for part in ("body", "orelse", "finalbody")]
        for part in inside:
            yield from _given_once(part)
        if not any(inside):
            for node in ast.walk(statement):
                yield from _names_given(node)


def _names_given(node: ast.AST) -> Iterator[str]:
    """What a node gives a value, or makes a variable of another function."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, (ast.Global, ast.Nonlocal)):
        yield from node.names
    elif isinstance(node, ast.alias):
        yield node.asname or node.name
    elif isinstance(node, (*_DEFINITIONS, ast.ExceptHandler)) and node.name is not None:
        yield node.name


class _Pruner(ast.NodeTransformer):
    def __init__(self, flags: _Flags) -> None:
        self._flags = flags

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        value = self._flags.value_of(node.test)
        if value is None:
            return node
        return (node.body if value else node.orelse) or ast.copy_location(ast.Pass(), node)

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        value = self._flags.value_of(node.test)
        if value is None:
            return node
        return node.body if value else node.orelse
