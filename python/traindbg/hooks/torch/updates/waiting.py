"""Parameters that get gradients, and whose optimizer never steps while others do.

Of an encoder and a decoder with an optimizer each, only the decoder's is stepped, say. Asked only
of parameters with gradients that are in some optimizer of the process, and in none that steps what
is watched. An optimizer may step seldom, or begin later: whoever hears of these facts has to wait
for the end. Their values have to be as an initialiser drew them, and their versions as they were.

That it was forgotten, and not meant, is told apart (`unstepped_optimizer_forgotten`): where the
program's text steps that optimizer nowhere (`text.steps_of`), and the module that it trains is of
another class than those of all that have stepped. A random network that stays as it is mostly has
the class of the one that learns from it.

Kept are weak references, versions and first elements: the models may be gone when a run ends.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg import _core
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.text.steps_of import is_never_stepped
from traindbg.hooks.torch.updates.resume import checkpoints
from traindbg.hooks.torch.updates.untrained import first_elements_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from traindbg.hooks.torch.base.teller import Teller

_MOST = 64  # parameters
_LOOKS = 3  # that a parameter comes through unchanged before its optimizer is searched for


class Drawn(NamedTuple):
    """What is asked of parameters."""

    is_fresh: list[bool | None]  # each: whether it is as an initialiser drew it
    place: str  # the module that has the first one


class _Known(NamedTuple):
    parameter: weakref.ref[torch.Tensor]
    version: int
    first: tuple[float, ...]
    looks: int  # that it has come through
    optimizer: weakref.ref[torch.optim.Optimizer] | None = None  # None: it is not known yet


def _holders(parameters: Container[int]) -> dict[int, list[torch.optim.Optimizer]]:
    """The optimizers that have these, by their ids. Goes through all objects."""
    found: dict[int, list[torch.optim.Optimizer]] = {}
    for thing in _core.instances_of(torch.optim.Optimizer):
        for group in vars(thing).get("param_groups", ()):
            for parameter in group.get("params", ()):
                if id(parameter) in parameters:
                    found.setdefault(id(parameter), []).append(thing)
    return found


def _trained_by(
    optimizers: Iterable[torch.optim.Optimizer],
) -> list[type[torch.nn.Module] | None]:
    """Of each: the class of the smallest module that holds all that it trains; None: of several.

    Goes through all objects.
    """
    held: list[tuple[set[int], int, type[torch.nn.Module]]] = []
    for module in _core.instances_of(torch.nn.Module):
        try:
            own = {id(parameter) for parameter in module.parameters()}
            held.append((own, sum(1 for _ in module.modules()), type(module)))
        except Exception:  # half made: its __init__ raised
            continue
    # Of those that hold the same, the outermost one is what the program calls a model.
    held.sort(key=lambda each: (len(each[0]), -each[1]))
    found: list[type[torch.nn.Module] | None] = []
    for optimizer in optimizers:
        groups = vars(optimizer).get("param_groups", ())
        own = {id(parameter) for group in groups for parameter in group.get("params", ())}
        found.append(next((kind for ids, _, kind in held if own and own <= ids), None))
    return found


class Waiting:
    """One per recording."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._known: dict[int, _Known] = {}
        self._place = ""  # of the first one
        # By their ids: an optimizer may have no hash.
        self._stepped: dict[int, weakref.ref[torch.optim.Optimizer]] = {}
        self._is_forgotten = False
        self._was_told = False

    def forget(self) -> None:
        """Another training begins. Which optimizers have stepped is still known."""
        self._known = {}

    def stepping(self, optimizers: Iterable[torch.optim.Optimizer]) -> None:
        """Those that have stepped by now."""
        for optimizer in optimizers:
            known = self._stepped.get(id(optimizer))
            if known is None or known() is not optimizer:
                self._stepped[id(optimizer)] = weakref.ref(optimizer)

    def add(self, parameters: Iterable[torch.Tensor]) -> None:
        """With gradients, and of optimizers that did not step what is watched."""
        new = [p for p in parameters if id(p) not in self._known][: _MOST - len(self._known)]
        for parameter, first in zip(new, first_elements_of(new), strict=True):
            reference = weakref.ref(parameter)
            self._known[id(parameter)] = _Known(reference, parameter._version, first, 0)

    def tell(self, judge: Callable[[list[torch.Tensor]], Drawn]) -> None:
        """At a step that is looked at. `judge` is asked once, and of parameters that stay."""
        same = self._unchanged()
        new = [p for key, p in same.items() if self._known[key].looks == _LOOKS]
        if new:
            self._find_optimizers(new, judge(new))
        waiting = [key for key, known in self._known.items() if known.optimizer is not None]
        if waiting or self._was_told:
            self._was_told = True
            place = self._place if waiting else ""
            self._teller.fact("unstepped_optimizer", len(waiting), place)
            if waiting and self._is_forgotten:
                self._teller.fact("unstepped_optimizer_forgotten", 1)

    def _unchanged(self) -> dict[int, torch.Tensor]:
        """Lets go of all others."""
        same: dict[int, torch.Tensor] = {}
        for key, known in self._known.items():
            parameter = known.parameter()
            is_here = known.optimizer is None or self._never_stepped(known.optimizer())
            if parameter is None or parameter.grad is None or not is_here:
                continue
            if parameter._version == known.version:
                same[key] = parameter
        self._known = {
            key: self._known[key]._replace(looks=self._known[key].looks + 1)
            for key, first in zip(same, first_elements_of(list(same.values())), strict=True)
            if first == self._known[key].first
        }
        return {key: same[key] for key in self._known}

    def _find_optimizers(self, parameters: list[torch.Tensor], drawn: Drawn) -> None:
        """Keeps those that are as they were drawn, and have one optimizer, which never stepped."""
        holders = _holders({id(parameter) for parameter in parameters})
        # Of few numbers it may seem that they were not drawn: what was written to tells, too.
        are_fresh = True in drawn.is_fresh and not any(map(checkpoints.was_changed, parameters))
        found: dict[int, torch.optim.Optimizer] = {}
        for parameter in parameters:
            held_by = holders.get(id(parameter), [])
            if are_fresh and len(held_by) == 1 and self._never_stepped(held_by[0]):
                known = self._known[id(parameter)]
                self._known[id(parameter)] = known._replace(optimizer=weakref.ref(held_by[0]))
                self._place = drawn.place
                found[id(held_by[0])] = held_by[0]
            else:
                del self._known[id(parameter)]
        if found:
            self._is_forgotten = self._are_forgotten(list(found.values()))

    def _are_forgotten(self, optimizers: list[torch.optim.Optimizer]) -> bool:
        """Whether the text steps none of them, and no other one trains a module of the class."""
        if not all(is_never_stepped(sources.made_in(each)) for each in optimizers):
            return False
        stepped = [each for known in self._stepped.values() if (each := known()) is not None]
        kinds = _trained_by([*optimizers, *stepped])
        own, others = kinds[: len(optimizers)], kinds[len(optimizers) :]
        return None not in own and not set(own) & set(others)

    def _never_stepped(self, optimizer: torch.optim.Optimizer | None) -> bool:
        if optimizer is None or getattr(optimizer, "state", None):
            return False
        known = self._stepped.get(id(optimizer))
        return known is None or known() is not optimizer
