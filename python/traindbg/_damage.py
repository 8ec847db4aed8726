"""Damage that was met while reading: told once per place, and kept for `Run.damage`."""

from __future__ import annotations

import itertools
import warnings
from typing import Any
from weakref import WeakValueDictionary

from traindbg.errors import DamageWarning

_numbers = itertools.count(1)
_by_number: WeakValueDictionary[int, MetDamage] = WeakValueDictionary()


class MetDamage:
    """What the readers of one run met. Readers in other threads know it by `number`."""

    def __init__(self) -> None:
        self.number = next(_numbers)
        self._told: set[tuple[str, int, str]] = set()
        self._places: dict[tuple[str, int, str], dict[str, Any]] = {}
        _by_number[self.number] = self

    def tell(
        self, places: list[dict[str, Any]], *, keeps: bool = False, stacklevel: int = 3
    ) -> None:
        """Warns of each place that is new; with `keeps`, `beside` gives it from then on.

        Not of the end of what a crash cut off or what is just being written: nothing that was
        recorded is lost with it. A place without bytes is not kept: it may be there the next time.
        """
        for place in places:
            key = (place["file"], place["offset"], place["what"])
            if place["tail"]:
                continue
            if keeps and place["bytes"]:
                self._places[key] = place
            if key in self._told:
                continue
            self._told.add(key)
            warnings.warn(
                f"{place['file']}, byte {place['offset']}: {place['what']}",
                DamageWarning,
                stacklevel=stacklevel,
            )

    def beside(self, places: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """`places`, and those that were met elsewhere."""
        known = {(place["file"], place["offset"], place["what"]) for place in places}
        return places + [place for key, place in list(self._places.items()) if key not in known]


def deliver(number: int, places: list[dict[str, Any]]) -> None:
    """Called by the core, in the main thread, for a stream that another thread may have read."""
    (_by_number.get(number) or MetDamage()).tell(places, keeps=True, stacklevel=1)
