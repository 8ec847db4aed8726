"""Puts what a command writes between two marks of a page, and touches nothing else of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from measure.errors import MeasureError

if TYPE_CHECKING:
    from pathlib import Path


class Part:
    """What is between the marks `begin` and `end` in the page at `path`."""

    def __init__(self, path: Path, begin: str, end: str) -> None:
        self.path = path
        self._begin, self._end = begin, end

    def check(self) -> None:
        """Raises MeasureError where a mark is missing or is there twice, OSError without a page."""
        self._around()

    def write(self, text: str) -> None:
        """Replaces the part by `text`. Raises as check() does, and leaves the page alone then."""
        before, after = self._around()
        whole = f"{before}{self._begin}\n\n{text.strip()}\n\n{self._end}{after}"
        self.path.write_bytes(whole.encode())

    def _around(self) -> tuple[str, str]:
        page = self.path.read_bytes().decode()
        for mark in (self._begin, self._end):
            times = page.count(mark)
            if times != 1:
                raise MeasureError(
                    f"{self.path}: the mark {mark} must be there once, not {times} times"
                )
        before, _, rest = page.partition(self._begin)
        _, end, after = rest.partition(self._end)
        if not end:
            raise MeasureError(f"{self.path}: the mark {self._end} comes before {self._begin}")
        return before, after
