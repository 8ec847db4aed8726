"""Whether what runs now was chosen: in a loop, below an `if` that compares values.

    for epoch in range(20):
        ...
        if accuracy > best:
            best, weights = accuracy, copy.deepcopy(model.state_dict())

Weights that are taken there are the best ones by some number, however often that was. Those that
are taken once, without asking anything, are what was before: of an adaptation, say.
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.base.sources import USERS, path_of, sources
from traindbg.hooks.torch.text.rounds_text import LOOPS, Text, assigned, key_of, read

if TYPE_CHECKING:
    from types import CodeType, FrameType

_MOST_FRAMES = 32
_MOST_USERS = 4  # frames of the user's, from the innermost outwards
_MOST_PLACES = 64
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
# What a comparison is called that is made elsewhere: `is_better(value)`, `self.monitor_op(a, b)`.
_COMPARING = re.compile("better|best|improv|monitor|less|greater", re.IGNORECASE)
_LOOP, _CHOICE = 1, 2

_places: dict[tuple[CodeType, int], int] = {}


def is_chosen() -> bool:
    """Of the user's running code. False also where its text cannot be read."""
    frame: FrameType | None = sys._getframe(1)
    found = users = 0
    for _ in range(_MOST_FRAMES):
        if frame is None or users >= _MOST_USERS:
            break
        if sources.owner(frame.f_code.co_filename) == USERS:
            users += 1
            at = frame.f_code, frame.f_lineno
            if at not in _places:
                if len(_places) >= _MOST_PLACES:
                    return False
                _places[at] = _around(frame)
            # What is compared around a loop is not compared in each of its rounds.
            found |= _places[at] & (_LOOP if found & _LOOP else _LOOP | _CHOICE)
        frame = frame.f_back
    return found == _LOOP | _CHOICE


def _around(frame: FrameType) -> int:
    """What is around a line of a function: loops, and choices inside of them."""
    code = frame.f_code
    text = read(path_of(code.co_filename), frame.f_globals, [code])
    scope = None if text is None else text.function_of(code)
    return 0 if text is None or scope is None else around(text, scope, frame.f_lineno)


def around(text: Text, scope: Any, line: int) -> int:
    """The same by a text."""
    found = 0
    for above, _ in reversed(list(itertools.pairwise(text.statements_at(scope, line)))):
        if isinstance(above, LOOPS):
            return found | _LOOP
        if isinstance(above, ast.If) and _compares(above.test, scope):
            found |= _CHOICE
    return found


def _compares(test: ast.expr, scope: Any) -> bool:
    """Whether values are compared, also where a name was given what that said."""
    keys = {key_of(node) for node in ast.walk(test) if isinstance(node, (ast.Name, ast.Attribute))}
    made = [value for key in sorted(keys - {""}) for value in assigned(scope, key)]
    return any(
        isinstance(node, ast.Compare) and any(isinstance(op, _ORDERS) for op in node.ops)
        for value in (test, *made)
        for node in ast.walk(value)
    ) or any(
        isinstance(node, (ast.Name, ast.Attribute)) and _COMPARING.search(_last_of(node))
        for value in (test, *made)
        for node in ast.walk(value)
    )


def _last_of(node: ast.Name | ast.Attribute) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id
