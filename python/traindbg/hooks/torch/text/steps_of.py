"""Whether the program's text steps an optimizer anywhere, told by the name that it was given.

    encoder_optimizer = torch.optim.Adam(encoder.parameters())
    ...
    encoder_optimizer.zero_grad()  # and no encoder_optimizer.step()

It may be stepped where that name has a call of `step`, reached or not (below a flag that is false
it is meant not to), and where something else gets the optimizer: a list, a dict, another name, a
function whose parameter is called otherwise. Of an optimizer that was not given a name by the
statement that made it, nothing is known.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import TYPE_CHECKING

from traindbg.hooks.torch.base.sources import USERS, path_of, sources
from traindbg.hooks.torch.text.rounds_text import FUNCTIONS, LOOPS, Text, read

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.sources import Line

_MOST_FILES = 64
_MOST_BYTES = 256 << 10
# What may be asked of an optimizer without a step.
_NO_STEPS = ("add_param_group", "defaults", "param_groups", "state", "state_dict", "zero_grad")
_BY_ANY_NAME = ("eval", "exec", "globals", "locals", "vars")


def is_never_stepped(made: Line | None) -> bool:
    """Of the optimizer that was made in a line. False also where the texts do not tell."""
    if made is None or sources.owner(made.file) != USERS:
        return False
    own = path_of(made.file)
    files = _files()
    own_text = read(own, {}, ())
    name = "" if own_text is None else name_made_in(own_text, made.number)
    if not name or own not in files or len(files) > _MOST_FILES:
        return False
    for path in files:
        try:
            if os.path.getsize(path) > _MOST_BYTES:
                return False
            with open(path, encoding="utf-8") as file:
                has_name = re.search(rf"\b{name}\b", file.read()) is not None
        except (OSError, ValueError):
            return False
        if has_name:
            text = own_text if path == own else read(path, {}, ())
            if text is None or may_step(text, name):
                return False
    return True


def _files() -> list[str]:
    """Of the program: those that its modules were made of."""
    found: set[str] = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and sources.owner(file) == USERS:
            found.add(path_of(file))
    return sorted(found)


def name_made_in(text: Text, line: int) -> str:
    """The name, or the attribute, that one call in a line is given; empty: it is not that plain."""
    found = [
        node
        for node in ast.walk(text.tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    if len(found) != 1 or not isinstance(found[0].value, ast.Call):
        return ""
    targets = found[0].targets if isinstance(found[0], ast.Assign) else [found[0].target]
    above = text.above(found[0])
    if len(targets) != 1 or any(isinstance(each, LOOPS) for each in above):
        return ""
    target = targets[0]
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) else ""


def may_step(text: Text, name: str) -> bool:
    """Whether a text may step what has this name."""
    for node in ast.walk(text.tree):
        if isinstance(node, ast.Attribute) and node.attr == "__dict__":
            return True
        if isinstance(node, ast.Name) and node.id in _BY_ANY_NAME:
            return True
        if isinstance(node, ast.Call) and _name_of(node.func) == "getattr":
            asked = node.args[1] if len(node.args) > 1 else None
            if not isinstance(asked, ast.Constant) or asked.value == name:
                return True
        if _name_of(node) != name:
            continue
        if isinstance(getattr(node, "ctx", None), ast.Load) and not _is_harmless(text, node, name):
            return True
    return False


def _is_harmless(text: Text, node: ast.AST, name: str) -> bool:
    """Whether a use of the name steps nothing and gives it away under no other name."""
    above = next(text.above(node), None)
    if isinstance(above, ast.Attribute):
        return above.attr in _NO_STEPS
    if isinstance(above, ast.keyword):
        call = next(text.above(above), None)
        return isinstance(call, ast.Call) and above.arg == name and _has_parameter(text, call, name)
    return isinstance(above, ast.Call) and node in above.args and _has_parameter(text, above, name)


def _has_parameter(text: Text, call: ast.Call, name: str) -> bool:
    """Whether a function of this text is called, whose parameter has the same name."""
    called = _name_of(call.func)
    found = [
        node for node in ast.walk(text.tree) if isinstance(node, FUNCTIONS) and node.name == called
    ]
    return len(found) == 1 and any(
        each.arg == name
        for each in (*found[0].args.posonlyargs, *found[0].args.args, *found[0].args.kwonlyargs)
    )


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
