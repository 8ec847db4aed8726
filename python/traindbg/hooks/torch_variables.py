"""What a running program calls its modules: the variables and attributes that hold them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch_sources import FRAMEWORKS, sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

_MOST_FRAMES = 200
_MOST_HELD = 256  # of a list or a mapping: longer ones are not looked into


def names_in_program(things: Sequence[Any]) -> list[str]:
    """Of each thing what the functions that run now call it; empty where none of them does.

    That is a variable, or an attribute of a function's `self`, of the innermost function that has
    one: `head`. Where one of a list or a mapping has no such name, all of these are named by their
    places: `nets.0`, `nets.head`.
    """
    wanted = {id(thing) for thing in things}
    held: list[tuple[str, Any]] = []
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        if sources.owner(frame.f_code.co_filename) != FRAMEWORKS:
            held += _held_in(frame.f_locals)
        frame = frame.f_back
    names: dict[int, str] = {}
    for name, value in held:
        if id(value) in wanted:
            names.setdefault(id(value), name)
    for name, value in reversed(held):  # what lasts first
        if wanted <= names.keys():
            break
        places = {
            id(each): f"{name}.{key}" for key, each in _placed_in(value) if id(each) in wanted
        }
        if not places.keys() <= names.keys():
            names |= places
    return [names.get(id(thing), "") for thing in things]


def _held_in(variables: Mapping[str, Any]) -> list[tuple[str, Any]]:
    fields = getattr(variables.get("self"), "__dict__", None)
    attributes = fields.items() if type(fields) is dict else ()
    return [(name, value) for name, value in [*variables.items(), *attributes] if _is_name(name)]


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and name.isidentifier()


def _placed_in(value: Any) -> list[tuple[Any, Any]]:
    if type(value) is dict and len(value) <= _MOST_HELD:
        return [(key, each) for key, each in value.items() if isinstance(key, (str, int))]
    if type(value) in (list, tuple) and len(value) <= _MOST_HELD:
        return list(enumerate(value))
    return []
