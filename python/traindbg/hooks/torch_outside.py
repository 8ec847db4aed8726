"""Parameters that a loss leads to, and that no watched model and no optimizer has: a criterion's.

A conditional random field that is made as the loss function, say. A loss may also have networks
that are meant to stay as they are, so that it is told, too, whether the values are as an
initialiser drew them. Copies of what is trained are targets. Kept are weak references, versions and
first elements.
"""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from traindbg.hooks.torch_fresh import looks_drawn
from traindbg.hooks.torch_leaves import held_as
from traindbg.hooks.torch_names import class_name
from traindbg.hooks.torch_parameters import has_memory, number_of
from traindbg.hooks.torch_resume import checkpoints
from traindbg.hooks.torch_untrained import first_elements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_MOST = 64
_FEWEST_DRAWN = 4  # elements, all of them different
_LARGE = 256  # elements of a matrix that show their distribution


class Told(NamedTuple):
    """Of the parameters that stay as they are."""

    parameters: int
    place: str  # the module that has the first of them
    is_fresh: bool


class _Known(NamedTuple):
    parameter: weakref.ref[nn.Parameter]
    state: tuple[int, tuple[float, ...]]
    is_lasting: bool  # it was in two graphs, and is not made anew for each step


def _state(parameter: nn.Parameter) -> tuple[int, tuple[float, ...]]:
    return parameter._version, first_elements(parameter)


def _is_drawn(parameter: nn.Parameter) -> bool | None:
    """Whether its values were drawn at random and never changed. None: that cannot be told."""
    if checkpoints.was_changed(parameter):
        return False
    if parameter.dim() >= 2 and number_of(parameter) >= _LARGE:
        first = first_elements(parameter)
        return None if len(set(first)) == 1 else looks_drawn(parameter)
    # Filters that were put in by hand have equal elements; numbers that were drawn have none.
    first = first_elements(parameter)
    is_varied = len(first) >= _FEWEST_DRAWN and len(set(first)) == len(first)
    return True if is_varied and checkpoints.was_initialised(parameter) else None


def _place_of(parameter: nn.Parameter) -> str:
    """What holds a parameter, by the name that its holder has. Goes through all objects."""
    for table in gc.get_referrers(parameter):
        if type(table) is not dict:
            continue
        for holder in gc.get_referrers(table):
            owners: list[Any] = [holder]
            if type(holder) is dict and holder.get("_parameters") is table:
                owners = gc.get_referrers(holder)
            for owner in owners:
                if issubclass(type(owner), nn.Module) and vars(owner).get("_parameters") is table:
                    name, _ = held_as(owner, gc.get_referrers(owner))
                    return name or class_name(owner)
    name, _ = held_as(parameter, gc.get_referrers(parameter))
    return name or "a parameter"


class Outside:
    """One per recording. Hears of the leaves of the graphs that are looked at."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._elsewhere: set[int] = set()  # ids of what something else changes, or an optimizer has
        self._asked: list[int] = []  # ids of those of which the next two are known
        self._place = ""
        self._is_fresh = False
        self._was_told = False  # that there are some

    def graph_seen(self, leaves: Sequence[torch.Tensor], watched: Iterable[nn.Parameter]) -> None:
        """`leaves`: those of a graph that no watched model has."""
        new: dict[int, _Known] = {}
        shapes = {leaf.shape for leaf in leaves}
        copies: set[tuple[float, ...]] | None = None
        for leaf in leaves[:_MOST]:
            if (
                type(leaf) is not nn.Parameter
                or number_of(leaf) == 0
                or id(leaf) in self._elsewhere
                or not has_memory(leaf)
            ):
                continue
            known = self._known.get(id(leaf))
            if known is not None and known.parameter() is leaf:
                new[id(leaf)] = known._replace(is_lasting=True)
                continue
            if copies is None:
                copies = {first_elements(p) for p in watched if p.shape in shapes}
            state = _state(leaf)
            if len(set(state[1])) > 1 and state[1] in copies:
                self._elsewhere.add(id(leaf))
            else:
                new[id(leaf)] = _Known(weakref.ref(leaf), state, is_lasting=False)
        self._known = new

    def told(self, in_any_optimizer: Callable[[], set[int]]) -> Told | None:
        """At a step; None: there is nothing to tell, as far as it is known."""
        kept: list[nn.Parameter] = []
        for key, known in list(self._known.items()):
            parameter = known.parameter()
            is_there = parameter is not None and parameter.requires_grad and has_memory(parameter)
            if parameter is None or not is_there or _state(parameter) != known.state:
                self._elsewhere.add(key)
                del self._known[key]
            elif known.is_lasting and parameter.grad is not None:
                kept.append(parameter)
        if kept and [id(parameter) for parameter in kept] != self._asked:
            held = in_any_optimizer()
            self._elsewhere |= held
            self._known = {key: known for key, known in self._known.items() if key not in held}
            kept = [parameter for parameter in kept if id(parameter) not in held]
            self._asked = [id(parameter) for parameter in kept]
            drawn = [_is_drawn(parameter) for parameter in kept]
            self._is_fresh = True in drawn and False not in drawn
            self._place = _place_of(kept[0]) if kept else ""
        self._was_told = self._was_told or bool(kept)
        if not self._was_told:
            return None
        return Told(len(kept), self._place, self._is_fresh) if kept else Told(0, "", False)
