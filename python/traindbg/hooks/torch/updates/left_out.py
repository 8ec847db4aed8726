"""Parameters that have gradients and are in no optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from traindbg import _core
from traindbg.hooks.torch.base.ids import Identities, IdentityTable
from traindbg.hooks.torch.base.parameters import number_of
from traindbg.hooks.torch.updates.outside import Outside, drawn_outside, place_of
from traindbg.hooks.torch.updates.resume import are_fresh, checkpoints
from traindbg.hooks.torch.updates.untrained import first_elements_of
from traindbg.hooks.torch.updates.waiting import Drawn, Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from torch import nn

    from traindbg.hooks.torch.base.parameters import Owner
    from traindbg.hooks.torch.base.teller import Teller
    from traindbg.hooks.torch.base.watched import WatchedModels

_MOST_CANDIDATES = 64


def parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """What an optimizer trains."""
    return [p for group in optimizer.param_groups for p in group.get("params", ())]


def in_any_optimizer() -> set[int]:
    """Ids of the parameters of every optimizer of the process. Goes through all objects."""
    found: set[int] = set()
    for thing in _core.instances_of(torch.optim.Optimizer):
        if "param_groups" in vars(thing):
            found.update(id(parameter) for parameter in parameters_of(thing))
    return found


class LeftOut:
    """Of the watched models, and of what lies outside of them. One per recording."""

    def __init__(self, teller: Teller, models: WatchedModels) -> None:
        self._teller = teller
        self._models = models
        self._firsts: IdentityTable[tuple[float, ...]] = (
            IdentityTable()
        )  # of those that were found: first elements
        self._searched = Identities()  # for which all optimizers were gone through
        self._elsewhere = Identities()  # that some optimizer has, or that are trained by hand
        self._frozen = Identities()  # at some look, and never trainable before
        self._trainable = Identities()  # at some look
        self._had = Identities()  # that an optimizer which is known has, or had once
        self._outside = Outside()
        self._waiting = Waiting(teller)

    def forget(self) -> None:
        """The losses that were looked at are of another training, or of other models."""
        self._outside = Outside()
        self._waiting.forget()

    def graph_seen(self, outside: list[torch.Tensor], parameters: Iterable[nn.Parameter]) -> None:
        """The leaves of a loss's graph that no watched model holds."""
        self._outside.graph_seen(outside, parameters)

    def held(self) -> set[int]:
        """Ids of the parameters of the optimizers that are known."""
        held: set[int] = set()
        for optimizer in self._models.optimizers():
            held.update(id(parameter) for parameter in parameters_of(optimizer))
        return held

    def tell(
        self,
        parameters: Iterable[nn.Parameter],
        reached: Container[int],
        modules: Callable[[], dict[str, nn.Module]],
        step: int,
    ) -> None:
        """Of a step. `reached`: ids of what backward changed in it; `modules`: by their names."""
        held = self.held()
        for optimizer in self._models.optimizers():
            self._had.remember(parameters_of(optimizer))
        found: list[tuple[torch.Tensor, Owner]] = []
        owners = self._models.owners()
        is_seen: set[int] = set()
        for parameter in parameters:
            key = id(parameter)
            if (
                parameter.requires_grad
                and parameter.grad is not None
                and key in reached  # in this step: others may have an old one
                and key not in held
                and key not in self._elsewhere
                and key in owners
                and key not in is_seen
                and number_of(parameter) > 0
            ):
                is_seen.add(key)
                found.append((parameter, owners[key]))
            elif not parameter.requires_grad and key not in self._trainable:
                self._frozen.remember([parameter])
        new = [p for p, _ in found if id(p) not in self._searched]
        if new:
            self._searched.remember(new)
            others = in_any_optimizer()
            self._waiting.add(p for p, _ in found if id(p) in others)
            self._elsewhere.remember(p for p, _ in found if id(p) in others)
            found = [(p, o) for p, o in found if id(p) not in self._elsewhere]
        kept: list[tuple[torch.Tensor, Owner]] = []
        firsts = first_elements_of([parameter for parameter, _ in found[:_MOST_CANDIDATES]])
        for (parameter, owner), first in zip(found, firsts, strict=False):
            if self._firsts.first_of(parameter, first) != first:
                self._elsewhere.remember([parameter])  # somebody changes it: it is trained by hand
            else:
                kept.append((parameter, owner))
        if step == 0:
            return  # its other optimizer may have yet to be made
        outside = self._outside.told(in_any_optimizer)
        self._tell_waiting(modules)
        if outside is not None:
            self._teller.fact("outside_optimizer", outside.parameters, outside.place)
            self._teller.fact("outside_optimizer_fresh", float(outside.is_fresh))
            if outside.more > 0:
                self._teller.fact("outside_optimizer_more", outside.more)
        count = len(kept) + max(0, len(found) - _MOST_CANDIDATES)
        self._teller.fact("not_in_optimizer", count, kept[0][1].module if kept else "")
        if kept:
            held_by = modules()
            fresh = are_fresh([(held_by.get(o.module), o.path, p) for p, o in kept])
            # Of weights that came from elsewhere, it may be meant; so of those that an optimizer of
            # this training had before: a later stage goes without them.
            is_loaded = True not in fresh and (
                all(id(p) in self._had for p, _ in kept)
                or any(
                    is_it is False and checkpoints.may_be_loaded(p)
                    for is_it, (p, _) in zip(fresh, kept, strict=True)
                )
            )
            self._teller.fact("not_in_optimizer_fresh", float(True in fresh))
            self._teller.fact("not_in_optimizer_loaded", float(is_loaded))
            thawed = sum(id(parameter) in self._frozen for parameter, _ in kept)
            self._trainable.remember(p for p, _ in kept if id(p) not in self._frozen)
            self._teller.fact("not_in_optimizer_thawed", thawed)

    def _tell_waiting(self, modules: Callable[[], dict[str, nn.Module]]) -> None:
        """Of parameters with gradients that are in an optimizer which does not step."""

        def drawn(parameters: list[torch.Tensor]) -> Drawn:
            owners = [owner for p in parameters if (owner := self._models.owners().get(id(p)))]
            if len(owners) < len(parameters):
                return drawn_outside(parameters)
            held_by = modules()
            named = [
                (held_by.get(owner.module), owner.path, p)
                for owner, p in zip(owners, parameters, strict=True)
            ]
            place = owners[0].module
            # Of a plain sequence it is a number, which says nothing without the model's own name.
            is_number = not any(map(str.isalpha, place))
            return Drawn(are_fresh(named), place_of(parameters[0]) if is_number else place)

        self._waiting.stepping(self._models.optimizers())
        self._waiting.add(self._outside.take_from_optimizers())
        self._waiting.tell(drawn)
