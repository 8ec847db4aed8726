"""What a forward pass of a copy may change in the process beside the copy, and puts back.

Random numbers of PyTorch, of each CUDA device that is in use, of NumPy and of `random`; generators,
numbers, texts, lists, sets and dictionaries that the code of the model's classes uses by the names
of its file, and that the classes have by name, such as a counter of calls. What a forward does
elsewhere, on a screen or in an object of another file, is done once more.
"""

from __future__ import annotations

import collections
import contextlib
import dis
import random
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_OURS = ("torch", "traindbg", "builtins")
_PLAIN = (int, float, complex, bool, str, bytes, type(None))
_CONTAINERS = (
    list,
    set,
    dict,
    collections.deque,
    collections.Counter,
    collections.OrderedDict,
    collections.defaultdict,
)
_MOST_ITEMS = 10_000  # of containers that are put back
_MOST_FUNCTIONS = 1000
_DEPTH = 3  # of containers in containers
_STORES = dis.opmap["STORE_GLOBAL"]
_nothing = object()


def classes_of(model: torch.nn.Module) -> Iterator[type]:
    """The classes of its modules and those above them, but for those of PyTorch."""
    seen: set[type] = set()
    for module in model.modules():
        for each in type(module).__mro__:
            if each not in seen and each.__module__.partition(".")[0] not in _OURS:
                seen.add(each)
                yield each


class _Used(NamedTuple):
    """What of one file the code of a model's classes uses."""

    names: dict[str, Any]  # of the file
    used: set[str]
    stored: set[str]  # by `global`


def _codes_in(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes_in(constant)


def _used_by(classes: list[type]) -> list[_Used]:
    """Goes through their functions, and those of their files that these call."""
    found: dict[int, _Used] = {}
    seen: set[int] = set()
    waiting = [each for one in classes for each in vars(one).values()]
    while waiting and len(seen) < _MOST_FUNCTIONS:
        function = waiting.pop()
        if isinstance(function, (staticmethod, classmethod)):
            function = function.__func__
        if isinstance(function, property):
            function = function.fget
        if not isinstance(function, FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        names = function.__globals__
        if str(names.get("__name__", "")).partition(".")[0] in _OURS:
            continue
        file = found.setdefault(id(names), _Used(names, set(), set()))
        for code in _codes_in(function.__code__):
            new = set(code.co_names) - file.used
            file.used.update(new)
            waiting += [names[name] for name in new if name in names]
            if _STORES in code.co_code[::2]:
                file.stored.update(
                    each.argval
                    for each in dis.get_instructions(code)
                    if each.opname == "STORE_GLOBAL"
                )
        for cell in function.__closure__ or ():
            with contextlib.suppress(ValueError):  # it is empty
                waiting.append(cell.cell_contents)
    return list(found.values())


def _items(container: Any) -> list[Any]:
    return list(container.items()) if isinstance(container, dict) else list(container)


def _is_same(now: list[Any], before: list[Any]) -> bool:
    def is_same(one: Any, other: Any) -> bool:
        if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
            return all(a is b for a, b in zip(one, other, strict=True))
        return one is other

    return len(now) == len(before) and all(map(is_same, now, before))


class _Names:
    """What a file or a class has by these names, of which those may be given other values."""

    def __init__(self, owner: dict[str, Any] | type, used: set[str], stored: set[str]) -> None:
        self._owner = owner
        names = dict(self._now())
        self._plain = {name: names[name] for name in stored if type(names.get(name)) in _PLAIN}
        self._missing = {name for name in stored if name not in names}
        self._containers: list[tuple[Any, list[Any]]] = []
        self._left = _MOST_ITEMS
        for name in used:
            if not name.startswith("__"):
                self._note(names.get(name), _DEPTH)

    def _now(self) -> Any:
        return self._owner if isinstance(self._owner, dict) else vars(self._owner)

    def _note(self, value: Any, depth: int) -> None:
        if type(value) not in _CONTAINERS or len(value) > self._left or depth == 0:
            return
        self._left -= len(value)
        self._containers.append((value, _items(value)))
        for item in value.values() if isinstance(value, dict) else value:
            self._note(item, depth - 1)

    def _set(self, name: str, value: Any) -> None:
        if isinstance(self._owner, dict):
            self._owner[name] = value
        else:
            setattr(self._owner, name, value)

    def put_back(self) -> None:
        now = dict(self._now())
        for name, value in self._plain.items():
            if now.get(name, _nothing) is not value:
                self._set(name, value)
        for name in now.keys() & self._missing:
            if isinstance(self._owner, dict):
                del self._owner[name]
            else:
                delattr(self._owner, name)
        for container, before in self._containers:
            if _is_same(_items(container), before):
                continue
            container.clear()
            if isinstance(container, (list, collections.deque)):
                container.extend(before)
            else:
                container.update(dict(before) if isinstance(container, dict) else before)


class ProcessState:
    """All of that, as it is when this is made. One thread."""

    def __init__(self, model: torch.nn.Module) -> None:
        classes = list(classes_of(model))
        files = _used_by(classes)
        values = [file.names.get(name) for file in files for name in file.used]
        # By name in these files: read, but not to be written to.
        self.tensors = {id(value) for value in values if isinstance(value, torch.Tensor)}
        self.generators: set[int] = set()  # of PyTorch's, that are put back
        self._names = [_Names(file.names, file.used, file.stored) for file in files]
        for each in classes:
            names = {name for name in vars(each) if not name.startswith("__")}
            self._names.append(_Names(each, names, names))
        self._random: list[Callable[[], Any]] = []  # each puts a generator back
        self._note_random(random.getstate, random.setstate)
        self._note_random(torch.get_rng_state, torch.set_rng_state)
        if torch.cuda.is_initialized():
            self._note_random(torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all)
        numpy_random = sys.modules.get("numpy.random")
        if numpy_random is not None:
            self._note_random(lambda: numpy_random.get_state(legacy=False), numpy_random.set_state)
        for value in values:
            self._note_generator(value, numpy_random)

    def _note_random(self, get: Callable[[], Any], put: Callable[[Any], Any]) -> None:
        state = get()
        self._random.append(lambda: put(state))

    def _note_generator(self, value: Any, numpy_random: Any) -> None:
        if isinstance(value, torch.Generator):
            self.generators.add(id(value))
            self._note_random(value.get_state, value.set_state)
        elif isinstance(value, random.Random):
            self._note_random(value.getstate, value.setstate)
        elif numpy_random is None:
            return
        elif isinstance(value, numpy_random.RandomState):
            self._note_random(lambda: value.get_state(legacy=False), value.set_state)
        elif isinstance(value, numpy_random.Generator):
            bits = value.bit_generator
            self._note_random(lambda: bits.state, lambda state: setattr(bits, "state", state))

    def rewind(self) -> None:
        """Random numbers are from now on those that came when this was made."""
        for put in self._random:
            put()

    def put_back(self) -> None:
        try:
            for names in self._names:
                names.put_back()
        finally:
            self.rewind()
