"""Groups of an optimizer of which nothing can be trained, though the model's own numbers are in it.

    self.stiffness = nn.Parameter(torch.tensor(3.0), requires_grad=False)
    optimizer = Adam([{"params": curve.parameters()}, {"params": [model.stiffness], "lr": 0.02}])

Who gives parameters a group of their own means to train them. Layers are passed over: a loaded one
is frozen for good, or until a later stage, and its group waits for that. So are the numbers of
PyTorch's own modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from traindbg.hooks.torch.base.ids import Identities

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import torch
    from torch import nn

_MOST_DIMENSIONS = 1  # numbers, and vectors of them


class FrozenGroup(NamedTuple):
    """The first of them."""

    place: str  # of its first parameter
    parameters: int


class FrozenGroups:
    """One per recording."""

    def __init__(self) -> None:
        self._trained = Identities()  # that required a gradient at some look, or had one

    def find(
        self, optimizers: Iterable[torch.optim.Optimizer], modules: Mapping[str, nn.Module]
    ) -> FrozenGroup | None:
        """`modules`: by their places."""
        found: list[torch.Tensor] | None = None
        for optimizer in optimizers:
            groups = [list(group.get("params", ())) for group in optimizer.param_groups]
            are_trained = [[p.requires_grad or p.grad is not None for p in g] for g in groups]
            for group, of_group in zip(groups, are_trained, strict=True):
                self._trained.remember(p for p, is_it in zip(group, of_group, strict=True) if is_it)
                if found is None and any(map(any, are_trained)) and self._is_frozen(group):
                    found = group
        if found is None:
            return None
        own = _numbers_of(modules)
        places = [own.get(id(parameter)) for parameter in found]
        return None if None in places else FrozenGroup(places[0] or "", len(places))

    def _is_frozen(self, group: list[torch.Tensor]) -> bool:
        return bool(group) and all(
            p.dim() <= _MOST_DIMENSIONS and not p.requires_grad and id(p) not in self._trained
            for p in group
        )


def _numbers_of(modules: Mapping[str, nn.Module]) -> dict[int, str]:
    """Places of parameters that modules of the program's own hold themselves, by their ids."""
    return {
        id(parameter): name if place == "model" else f"{place}.{name}"
        for place, module in modules.items()
        if not type(module).__module__.startswith("torch.")
        for name, parameter in module.named_parameters(recurse=False)
    }
