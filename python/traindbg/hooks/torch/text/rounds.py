"""How many rounds the training's loop was to go, and after how many it was left.

    for epoch in range(60):
        ...
        if stopper(validation_loss):
            break

That a training was short says nothing; that its own loop was to go on, and was left by an early
stopping, does. While it trains, only places are noted: the code objects and lines of the program's
own frames in which the model is stepped (where the loop's facts are told), in which an evaluation
begins, in which a loader is gone through and in which `sys.exit` is called, and the names of their
modules. No frame and no variable is kept, and no local variable is looked at.

At the end the program's text is read (`text.rounds_text`, `text.rounds_stop`), if it is still
what runs and its modules are still there. Nothing is told unless all of this can be read from it:
the outermost loop that the training was in, which was begun once; its number of rounds; that it may
be left by an early stopping, and by nothing else; and how many rounds were made, by its variable or
by what each round does once. What other files raise, and whether it is caught in a library, is not
known.
"""

from __future__ import annotations

import ast
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch.base.sources import FRAMEWORKS, USERS, Line, line_of, path_of, sources
from traindbg.hooks.torch.text.rounds_stop import catches, early_stopping, ends_process, exits_of
from traindbg.hooks.torch.text.rounds_text import (
    FUNCTIONS,
    LOOPS,
    Scope,
    Text,
    number_of,
    own_nodes,
    read,
)

if TYPE_CHECKING:
    from types import CodeType, FrameType

_MOST_STACKS = 8  # of a kind
_MOST_FRAMES = 200
_NO_PLAN = 100_000  # so many rounds are "until the time is up"
_CALLED_ONCE = ("absl", "click", "fire", "typer")  # what they are given

Stack = tuple[tuple["CodeType", int], ...]  # the program's own frames, the innermost first
Key = tuple[tuple[int, int], ...]  # of a stack: a code's hash would be made of all its constants
Counted = list[tuple[Stack, int]]  # how often something happened there
Homes = dict[str, tuple[str, int]]  # by files: the name of their module, and which one it is


class Left(NamedTuple):
    """A loop that was left early."""

    planned: int
    done: int
    patience: int  # of the early stopping; 0: not known
    gain: float  # that it asks for at least; -1: not known
    sense: int  # -1: it wants lower values, 1: higher ones, 0: not known
    kind: int  # of these: 1: a loss, 2: the one that the training lowers, 0: not known
    line: Line


def _stack(frame: FrameType | None, of_step: bool, homes: Homes) -> Stack:
    """Up to the module that the program is; empty where something else calls it or its parts.

    Puts the files' modules into `homes`.
    """
    found: list[tuple[CodeType, int]] = []
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        owner = sources.owner(code.co_filename)
        if owner == USERS:
            found.append((code, frame.f_lineno))
            if code.co_filename not in homes:
                known = frame.f_globals
                homes[code.co_filename] = (str(known.get("__name__")), id(known))
            if code.co_name == "<module>":
                return tuple(found)
        elif owner == FRAMEWORKS:
            if code.co_filename.startswith("<"):
                break
        elif found:
            if str(frame.f_globals.get("__name__")).partition(".")[0] not in _CALLED_ONCE:
                break
        elif of_step and code.co_name != "step":
            break  # a trainer's loop
        frame = frame.f_back
    return ()


class Rounds:
    """Of the process; its calls come from the training's thread."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Another recording begins, or it is over."""
        self.since = -1  # how many steps were made before the last evaluation
        self._stacks: dict[Key, Stack] = {}  # also keeps the codes, so that no other has their keys
        self._steps: dict[Key, int] = {}
        self._evaluations: dict[Key, int] = {}
        self._passes: dict[Key, int] = {}
        self._homes: Homes = {}
        self._exit: list[tuple[CodeType, int]] = []  # the frames that called `sys.exit`

    def steps(self) -> None:
        """The model is about to be stepped."""
        self._note(self._steps, of_step=True)

    def evaluates(self, steps: int) -> None:
        """The first loss of an evaluation, after so many steps."""
        self.since = steps
        self._note(self._evaluations)

    def pass_begins(self) -> None:
        """A loader of the training is gone through from now on."""
        self._note(self._passes)

    def exits(self) -> None:
        """`sys.exit` is called."""
        self._exit = _frames_of(sys._getframe(1))

    def _note(self, counts: dict[Key, int], of_step: bool = False) -> None:
        stack = _stack(sys._getframe(2), of_step, self._homes)
        key = tuple((id(code), line) for code, line in stack)
        if key in counts or len(counts) < _MOST_STACKS:
            counts[key] = counts.get(key, 0) + 1
            self._stacks.setdefault(key, stack)

    def _counted(self, counts: dict[Key, int]) -> Counted:
        return [(self._stacks[key], count) for key, count in counts.items()]

    def left(self, steps: int) -> Left | None:
        """At the end, after so many steps. None: nothing can be said of it."""
        if not self._steps or () in self._steps or len(self._steps) >= _MOST_STACKS:
            return None
        under_way = [*_frames_of(sys._getframe(1)), *self._exit]
        stepped = self._counted(self._steps)
        reader = _Reader([stack for stack, _ in stepped], self._homes)
        plans = [reader.plan(stack) for stack, _ in stepped]
        plan = plans[0]
        if plan is None or any(other is None or other.key != plan.key for other in plans):
            return None
        if any(code is plan.code and plan.loop.lineno <= at <= plan.end for code, at in under_way):
            return None  # it is not over, or the process was left in it
        if reader.may_end_process():
            return None
        stop = early_stopping(plan.loop, plan.scope)
        others = (self._counted(self._evaluations), self._counted(self._passes))
        done = reader.rounds(plan, stepped, others, steps)
        if stop is None or done is None or done < 1:
            return None
        line = line_of(plan.code, plan.loop.lineno)
        return Left(plan.planned, done, stop.patience, stop.gain, stop.sense, stop.kind, line)


def _variables_of(home: tuple[str, int] | None, file: str) -> dict[str, Any] | None:
    """Of the module of a file. None: it is gone, or another one has its name."""
    name, which = home or ("", 0)
    module = sys.modules.get(name)
    if type(module) is not ModuleType or id(vars(module)) != which:
        return None
    # At the end of a process `__main__` has none.
    return vars(module) if vars(module).get("__file__", file) == file else None


def _frames_of(frame: FrameType | None) -> list[tuple[CodeType, int]]:
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return found


class _Plan(NamedTuple):
    """The outermost loop that a step is made in."""

    code: CodeType
    loop: ast.For
    end: int
    scope: Scope
    planned: int
    first: int
    stride: int
    above: Stack  # the frames that it was called by

    @property
    def key(self) -> tuple[int, int, list[tuple[int, int]]]:
        return id(self.code), self.loop.lineno, [(id(code), line) for code, line in self.above]


class _Reader:
    """Reads the files of some stacks, each once."""

    def __init__(self, stacks: list[Stack], homes: Homes) -> None:
        self._homes = homes
        self._texts: dict[str, Text | None] = {}
        self._codes: dict[str, dict[int, CodeType]] = {}
        for stack in stacks:
            for code, _ in stack:
                self._codes.setdefault(code.co_filename, {})[id(code)] = code

    def _text(self, code: CodeType) -> Text | None:
        file = code.co_filename
        if file not in self._texts:
            path = os.path.normpath(path_of(file))
            codes = self._codes.get(file, {0: code}).values()
            variables = _variables_of(self._homes.get(file), file)
            self._texts[file] = None if variables is None else read(path, variables, codes)
        return self._texts[file]

    def may_end_process(self) -> bool:
        """Whether a file that was read has another way to end it than `sys.exit`."""
        return any(text is not None and ends_process(text.tree) for text in self._texts.values())

    def plan(self, stack: Stack) -> _Plan | None:
        """The outermost loop around a step, if it is one with a number of rounds."""
        scope: Scope | None = None
        for depth in range(len(stack) - 1, -1, -1):
            code, line = stack[depth]
            text = self._text(code)
            function = None if text is None else text.function_of(code)
            if text is None or function is None:
                return None
            if code.co_name == "<module>":
                text.reached = line
            path = text.statements_at(function, line)
            if not path or text.is_in_comprehension(path[-1], line):
                return None
            call = None
            if scope is not None:
                call = scope.text.call_at(scope.node, stack[depth + 1][1], code.co_name)
                if call is None:
                    return None  # perhaps several in one line
            scope = Scope(text, function, scope, call)
            loop = next((each for each in path[:-1] if isinstance(each, LOOPS)), None)
            if loop is not None:
                if not isinstance(loop, ast.For) or path[path.index(loop) + 1] not in loop.body:
                    return None
                return _plan_of(code, loop, scope, stack[depth + 1 :])
            if any(catches(each) for each in path):
                return None
        return None

    def rounds(
        self,
        plan: _Plan,
        stepped: Counted,
        others: tuple[Counted, ...],  # evaluations and passes
        steps: int,
    ) -> int | None:
        """How many rounds were made; the most that anything tells."""
        by_variable = _by_variable(plan)
        if by_variable is not None:
            return by_variable
        counts = [
            count
            for events in others
            if len(events) < _MOST_STACKS
            for stack, count in events
            if self._is_once_a_round(stack, plan, in_loops=True)
        ]
        if all(self._is_once_a_round(stack, plan, in_loops=False) for stack, _ in stepped):
            counts.append(steps)
        return max(counts, default=None)

    def _is_once_a_round(self, stack: Stack, plan: _Plan, in_loops: bool) -> bool:
        """Whether each round gets there; `in_loops`: perhaps several times."""
        depth = len(stack) - len(plan.above) - 1
        if depth < 0 or stack[depth][0] is not plan.code or stack[depth + 1 :] != plan.above:
            return False
        for code, line in stack[: depth + 1]:
            text = self._text(code)
            if code.co_name.startswith("<") and code is not plan.code:
                continue  # a lambda or a comprehension, called where the next frame is
            function = None if text is None else text.function_of(code)
            if text is None or function is None:
                return False
            path = text.statements_at(function, line)
            if code is plan.code:
                if plan.loop not in path or path[-1] is plan.loop:
                    return False
                area, path = plan.loop, path[path.index(plan.loop) + 1 :]
            else:
                area = function
            if not path or not _is_always_reached(path, area, text, in_loops):
                return False
        return True


def _is_always_reached(path: list[ast.stmt], area: Any, text: Text, in_loops: bool) -> bool:
    """Whether the last statement of a path is reached each time, from the beginning of `area`."""
    allowed = (ast.With, ast.AsyncWith, *(LOOPS if in_loops else ()))
    if not all(isinstance(each, allowed) for each in path[:-1]):
        return False
    last = path[-1]
    if not in_loops and isinstance(last, LOOPS):
        return False
    if isinstance(last, (ast.While, ast.Try, *FUNCTIONS, ast.ClassDef)):
        return False
    if any(isinstance(node, (ast.IfExp, ast.BoolOp, ast.Lambda)) for node in _header_of(last)):
        return False
    around = {id(area), *map(id, path)}
    for node in own_nodes(area):
        if isinstance(node, (ast.Continue, ast.Return)) and node.lineno < last.lineno:
            loop = next((each for each in text.above(node) if isinstance(each, LOOPS)), None)
            if isinstance(node, ast.Return) or id(loop) in around:
                return False
    return True


def _header_of(statement: ast.stmt) -> list[ast.AST]:
    """All of a statement but its body."""
    if isinstance(statement, ast.If):
        return list(ast.walk(statement.test))
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return list(ast.walk(statement.iter))
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [node for item in statement.items for node in ast.walk(item)]
    return list(ast.walk(statement))


def _plan_of(code: CodeType, loop: ast.For, scope: Scope, above: Stack) -> _Plan | None:
    if not exits_of(loop):
        return None
    given = _range_in(loop.iter, scope)
    if given is None:
        return None
    numbers = [number_of(each, scope) for each in given]
    known = [number for number in numbers if number is not None]
    if len(known) < len(numbers) or (len(known) == 3 and known[2] == 0):
        return None
    rounds = range(*known)
    if not 1 < len(rounds) < _NO_PLAN:
        return None
    end = loop.end_lineno or loop.lineno
    return _Plan(code, loop, end, scope, len(rounds), rounds.start, rounds.step, above)


def _range_in(node: ast.expr, scope: Scope) -> list[ast.expr] | None:
    """What `range` or `trange` is given, perhaps inside of `enumerate` or of a progress bar."""
    for _ in range(3):
        if not isinstance(node, ast.Call) or not node.args:
            return None
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        name = node.func.id if isinstance(node.func, ast.Name) else name
        is_plain = name in ("range", "enumerate") and isinstance(node.func, ast.Name)
        places = (scope.node, scope.text.tree)
        if is_plain and any(scope.text.bindings(name, each) for each in places):
            return None
        if any(isinstance(each, ast.Starred) for each in node.args) or len(node.args) > 3:
            return None
        if name == "trange" or (name == "range" and is_plain):
            return node.args if name == "trange" or not node.keywords else None
        if name not in ("tqdm", "track", "progress_bar") and not (name == "enumerate" and is_plain):
            return None
        if any(each.arg in ("initial", "start", "total") for each in node.keywords):
            return None
        if len(node.args) > 1:
            return None
        node = node.args[0]
    return None


def _by_variable(plan: _Plan) -> int | None:
    """By the loop's variable, where that is a module's and nothing else gives it a value."""
    text, target = plan.scope.text, plan.loop.target
    if plan.code.co_name != "<module>":
        return None
    is_counted = False
    if isinstance(target, ast.Tuple) and target.elts:
        call = plan.loop.iter
        is_counted = isinstance(call, ast.Call) and getattr(call.func, "id", "") == "enumerate"
        target = target.elts[0]
        if not is_counted:
            return None
    if not isinstance(target, ast.Name) or text.is_changed_elsewhere(target.id):
        return None
    value = text.variables.get(target.id)
    if len(text.bindings(target.id, text.tree)) != 1 or type(value) is not int:
        return None
    done = value + 1 if is_counted else (value - plan.first) // plan.stride + 1
    return done if 0 < done <= plan.planned else None


rounds = Rounds()
