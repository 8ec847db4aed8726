"""Where in its own code a training does things: the lines that findings lead to.

A finding about the learning rate belongs to the line where the optimizer is made, one about a
missing `zero_grad` to the lines of `backward()` and `step()`. Each place is looked up once, when it
is first passed: the innermost frame that is neither PyTorch's, nor ours, nor of a library. Only
names of files, functions and numbers of lines are kept, no frame and no text of a program.
"""

from __future__ import annotations

import inspect
import os
import sys
import sysconfig
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import CodeType, FrameType

_MOST_MODULES = 2048  # whose lines a description holds
_MOST_FRAMES = 200

# Whose a file is: the training's; of a package that is installed, which may be the training's, too;
# of PyTorch, Python or ours, where a training never is.
USERS, LIBRARYS, FRAMEWORKS = range(3)


def _inside(*directories: str | None) -> tuple[str, ...]:
    return tuple(os.path.join(os.path.abspath(each), "") for each in directories if each)


_START = os.getcwd()  # programs are named from there, and it may be left
_OF_FRAMEWORK = _inside(os.path.dirname(torch.__file__), str(Path(__file__).parents[1]))
_OF_LIBRARIES = _inside(sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))
_OF_PYTHON = _inside(sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"))
_PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


class Line(NamedTuple):
    """A line of a program."""

    file: str
    number: int
    function: str


def _whose(file: str) -> int:
    # No file: "<string>", or a cell of a notebook.
    if file.startswith(_OF_FRAMEWORK) or not os.path.isfile(file):
        return FRAMEWORKS
    if file.startswith(_OF_LIBRARIES) or any(part in file for part in _PACKAGES):
        return LIBRARYS
    return FRAMEWORKS if file.startswith(_OF_PYTHON) else USERS


def _is_key(thing: Any) -> bool:
    """Not what has an `__eq__` of its own and no `__hash__`."""
    return type(thing).__hash__ is not None


class Sources:
    """Of the process. Its calls come from the training's threads; what is noted once stays."""

    def __init__(self) -> None:
        self.is_open = False  # a training is recorded, of which it is noted what happens where
        self.has_changed = False  # since the last `described`
        # By what happens there; None where no file is known, as in a notebook's cells.
        self._lines: dict[str, Line | None] = {}
        self._modules: weakref.WeakKeyDictionary[torch.nn.Module, Line] = (
            weakref.WeakKeyDictionary()
        )
        self._made: weakref.WeakKeyDictionary[Any, Line] = weakref.WeakKeyDictionary()
        self._owners: dict[str, int] = {}  # whose each file is
        self._forwards: weakref.WeakKeyDictionary[type, int] = weakref.WeakKeyDictionary()

    def note(self, what: str) -> None:
        """Something happens now, `what` as in the core's `SourceLine`."""
        if self.is_open and what not in self._lines:
            self.put(what, self._users_line())

    def here(self) -> Line | None:
        """Where the training is now, to be `put` when it is known what that means."""
        return self._users_line() if self.is_open else None

    def caller(self) -> Line | None:
        """The same, also while nothing is recorded yet."""
        return self._users_line()

    def made(self, thing: Any) -> None:
        """An optimizer, a loader or a schedule is being made."""
        if _is_key(thing) and (line := self._users_line()) is not None:
            self._made[thing] = line

    def made_in(self, thing: Any) -> Line | None:
        """Where a thing was made that `made` was told of; None: that is not known."""
        return self._made.get(thing) if _is_key(thing) else None

    def used(self, what: str, thing: Any) -> None:
        """What was made is put to its use; the first of its kind counts."""
        if self.is_open and what not in self._lines and _is_key(thing):
            line = self._made.get(thing)
            if line is not None:
                self.put(what, line)

    def has(self, what: str) -> bool:
        """Whether it was noted."""
        return what in self._lines

    def put(self, what: str, line: Line | None) -> None:
        """`what` happens in this line."""
        self._lines[what] = line
        self.has_changed = self.has_changed or line is not None

    def registered(self, module: Any) -> None:
        """A module becomes part of another one, mostly in the statement that makes it."""
        is_new = isinstance(module, torch.nn.Module) and _is_key(module)
        if is_new and module not in self._modules:
            line = self._users_line()
            if line is not None:
                self._modules[module] = line

    def described(
        self, models: Iterable[tuple[torch.nn.Module, str]]
    ) -> list[dict[str, str | int]]:
        """All lines, for the description of a process; `models` with their names' prefixes."""
        self.has_changed = False
        found = {what: line for what, line in list(self._lines.items()) if line is not None}
        for model, prefix in models:
            own = self._line_of_class(type(model))
            if own is not None:
                found.setdefault("model", own)
            for path, module in model.named_modules():
                line = self._modules.get(module) if _is_key(module) else None
                if line is not None and len(found) < _MOST_MODULES:
                    where = prefix + path if path else prefix.rstrip(".")
                    found[f"module/{where}" if where else "model"] = line
        return [
            {"what": what, "file": line.file, "line": line.number, "function": line.function}
            for what, line in found.items()
        ]

    def open(self) -> None:
        """A recording begins."""
        self._lines.clear()
        self.has_changed = False
        self.is_open = True

    def close(self) -> None:
        """It is over. What was made stays known: another training may use it."""
        self._lines.clear()
        self.is_open = False

    def _users_line(self) -> Line | None:
        frame: FrameType | None = sys._getframe(1)
        library: Line | None = None
        for _ in range(_MOST_FRAMES):
            if frame is None:
                break
            code = frame.f_code
            owner = self.owner(code.co_filename)
            if owner == USERS:
                return line_of(code, frame.f_lineno)
            if owner == LIBRARYS and library is None:
                library = line_of(code, frame.f_lineno)
            frame = frame.f_back
        return library

    def owner(self, file: str) -> int:
        """Whose a file is: USERS, LIBRARYS or FRAMEWORKS."""
        owner = self._owners.get(file)
        if owner is None:
            owner = self._owners[file] = _whose(path_of(file))
        return owner

    def owner_of_forward(self, module: torch.nn.Module) -> int:
        """Who says what a module calls: USERS, LIBRARYS or FRAMEWORKS, where it cannot be told."""
        own = vars(module).get("forward")  # put into its place on the module itself
        if own is not None:
            return self._owner_of(own)
        kind = type(module)
        owner = self._forwards.get(kind)
        if owner is None:
            owner = self._forwards[kind] = self._owner_of(
                inspect.getattr_static(kind, "forward", 0)
            )
        return owner

    def _owner_of(self, function: Any) -> int:
        try:
            return self.owner(inspect.unwrap(function).__code__.co_filename)
        except Exception:  # scripted, a partial, a descriptor of its own
            return FRAMEWORKS

    def _line_of_class(self, kind: type) -> Line | None:
        code = getattr(vars(kind).get("__init__"), "__code__", None)
        if code is None or self.owner(code.co_filename) == FRAMEWORKS:
            return None
        return line_of(code, code.co_firstlineno)


def path_of(file: str) -> str:
    """Where a file of a code object lies."""
    return os.path.join(_START, file)


def line_of(code: CodeType, number: int) -> Line:
    """A line of it, as it is told."""
    file = path_of(code.co_filename)
    below = os.path.join(_START, "")
    if file.startswith(below):
        file = file[len(below) :]
    name = getattr(code, "co_qualname", code.co_name)
    return Line(file, number, "" if name == "<module>" else name)


sources = Sources()
