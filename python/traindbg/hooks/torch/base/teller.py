"""Who takes facts about the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch

    from traindbg.hooks.torch.base.later import Later


class Teller(Protocol):
    """Who takes facts (`base.tensors`)."""

    later: Later

    def fact(
        self,
        name: str,
        value: float | torch.Tensor,
        place: str = "",
        evaluation: bool = False,
    ) -> None: ...
