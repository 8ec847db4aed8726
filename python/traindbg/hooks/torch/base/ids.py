"""What is remembered by `id`, and forgotten with the object: Python gives its id to another.

A first model that is gone would otherwise pass what was seen of its parameters on to a second one.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

_Value = TypeVar("_Value")


class Identities(set[int]):
    """Ids of objects that exist."""

    def remember(self, things: Iterable[Any]) -> None:
        """Adds those that are not in it yet."""
        for thing in things:
            if id(thing) not in self:
                self.add(id(thing))
                weakref.finalize(thing, self.discard, id(thing)).atexit = False


class IdentityTable(dict[int, _Value]):
    """What is known of objects that exist, by their ids."""

    def first_of(self, thing: Any, value: _Value) -> _Value:
        """What is known of it; `value`, which is kept, where that is nothing."""
        if id(thing) not in self:
            self[id(thing)] = value
            weakref.finalize(thing, self._forget, id(thing)).atexit = False
        return self[id(thing)]

    def _forget(self, key: int) -> None:
        self.pop(key, None)
