"""Who takes facts about the loop."""

from __future__ import annotations

from typing import Protocol


class Teller(Protocol):
    """Who takes facts (`torch_tensors`)."""

    def fact(self, name: str, value: float, place: str = "", evaluation: bool = False) -> None: ...
