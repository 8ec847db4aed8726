"""Optimizers that take turns, and go on stepping after all their parameters were frozen.

A discriminator is frozen for the turn of the generator, say, and not unfrozen for its own. Its loss
still leads to the generator, so that backward() does not complain.

A turn is a backward pass and a step that no other optimizer shares. Where several step after one
pass, a part that is frozen for a while is a part, and its optimizer steps with the others.

What is kept are weak references to optimizers. Nothing is read of a tensor but its flags.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import torch

    from traindbg.hooks.torch.base.parameters import Parameters


class FrozenTurn(NamedTuple):
    """The turn of an optimizer that trained before."""

    frozen: int  # parameters, all that it has; 0: it trains again
    place: str  # the module of the first


_Optimizers = weakref.WeakSet["torch.optim.Optimizer"]


class FrozenTurns:
    """One per recording, one thread. Hears of the steps that are looked at."""

    def __init__(self) -> None:
        self._trained: _Optimizers = weakref.WeakSet()  # stepped with a gradient
        self._frozen: _Optimizers = weakref.WeakSet()  # a frozen turn of theirs was told
        self._sharing: _Optimizers = weakref.WeakSet()  # stepped after a pass that others used
        self._stepped: _Optimizers = weakref.WeakSet()  # since the last pass

    def forget(self) -> None:
        """Another training begins."""
        self.__init__()  # type: ignore[misc]

    def pass_begins(self) -> None:
        """A backward pass begins."""
        self._stepped.clear()

    def will_step(self, optimizer: torch.optim.Optimizer, table: Parameters) -> FrozenTurn | None:
        """Of any optimizer, of each of its steps; None: there is nothing to tell."""
        others = [other for other in self._stepped if other is not optimizer]
        self._stepped.add(optimizer)
        if others:
            self._sharing.update([optimizer, *others])
        own: list[Any] = [p for group in optimizer.param_groups for p in group["params"]]
        if any(parameter.grad is not None for parameter in own):
            self._trained.add(optimizer)
        is_frozen = bool(own) and not any(p.requires_grad or p.grad is not None for p in own)
        if is_frozen and (optimizer in self._sharing or optimizer not in self._trained):
            return None
        if not is_frozen and optimizer not in self._frozen:
            return None
        if is_frozen:
            self._frozen.add(optimizer)
        else:
            self._frozen.discard(optimizer)
        places = {id(p): owner.module for p, owner in zip(table.values, table.owners, strict=True)}
        return FrozenTurn(len(own) if is_frozen else 0, places.get(id(own[0]), "model"))
