"""Parameters that a loss leads to, and that no watched model and no optimizer has: a criterion's.

A conditional random field that is made as the loss function, say. A loss may also have networks
that are meant to stay as they are, so that it is told, too, whether the values are as an
initialiser drew them. Copies of what is trained are targets. Kept are weak references, versions and
first elements.
"""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from traindbg import _core
from traindbg.hooks.torch.base.leaves import names_of
from traindbg.hooks.torch.base.names import class_name
from traindbg.hooks.torch.base.parameters import has_memory, number_of
from traindbg.hooks.torch.updates.drawn import drawn
from traindbg.hooks.torch.updates.fresh import looks_drawn
from traindbg.hooks.torch.updates.resume import checkpoints
from traindbg.hooks.torch.updates.untrained import first_elements, first_elements_of
from traindbg.hooks.torch.updates.waiting import Drawn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_MOST = 64
_MOST_AROUND = 32  # modules around a parameter
_FEWEST_DRAWN = 4  # elements, all of them different
_LARGE = 256  # elements of a matrix that show their distribution


class Told(NamedTuple):
    """Of the parameters that stay as they are."""

    parameters: int
    place: str  # the module that has the first of them
    is_fresh: bool
    more: int  # that the loss leads to, and that were not looked at


class _Known(NamedTuple):
    parameter: weakref.ref[nn.Parameter]
    state: tuple[int, tuple[float, ...]]
    is_lasting: bool  # it was in two graphs, and is not made anew for each step


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
    was_drawn = is_varied and (checkpoints.was_initialised(parameter) or drawn.says(parameter))
    return True if was_drawn else None


def _holder_of(thing: Any, table: str, modules: Sequence[nn.Module]) -> tuple[Any, str]:
    """The first of the modules that has it in this table of its, and the key there."""
    for module in modules:
        own = vars(module).get(table)
        if type(own) is dict:
            for key, value in own.items():
                if value is thing:
                    return module, key
    return None, ""


def place_of(parameter: torch.Tensor) -> str:
    """Where the module is that holds a parameter, from what the program calls the outermost one on.

    Goes through all objects, a few times.
    """
    modules: list[nn.Module] = _core.instances_of(nn.Module)
    outermost, _ = _holder_of(parameter, "_parameters", modules)
    if outermost is None:
        return names_of([parameter], "")[0] or "a parameter"
    path: list[str] = []
    while len(path) < _MOST_AROUND:
        around, key = _holder_of(outermost, "_modules", modules)
        if around is None:
            break
        outermost = around
        path.insert(0, key)
    # What the program itself calls it, rather than some object that was given it.
    own = vars(sys.modules["__main__"]) if "__main__" in sys.modules else {}
    name = next((key for key, value in list(own.items()) if value is outermost), "")
    name = name or names_of([outermost], "")[0] or class_name(outermost)
    return ".".join([name, *path])


def copies_among(
    leaves: Sequence[torch.Tensor], watched: Iterable[nn.Parameter]
) -> list[nn.Parameter]:
    """Of a graph's leaves, those with the shape and first elements of a watched parameter.

    None where they are constant, as biases of 0 are in any model.
    """
    found = [p for p in leaves if type(p) is nn.Parameter and number_of(p) > 0 and has_memory(p)]
    shapes = {p.shape for p in found}
    known = set(first_elements_of([p for p in watched if p.shape in shapes]))
    firsts = first_elements_of(found)
    copies = [(p, first) for p, first in zip(found, firsts, strict=True) if first in known]
    are_varied = any(len(set(first)) > 1 for _, first in copies)
    return [p for p, _ in copies] if are_varied else []


def drawn_outside(parameters: Sequence[torch.Tensor]) -> Drawn:
    """Of parameters that no watched model has."""
    is_fresh = [_is_drawn(p) if isinstance(p, nn.Parameter) else None for p in parameters]
    first = parameters[0]
    return Drawn(is_fresh, place_of(first) if isinstance(first, nn.Parameter) else "")


class Outside:
    """One per recording. Hears of the leaves of the graphs that are looked at."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}
        self._elsewhere: set[int] = set()  # ids of what something else changes, or an optimizer has
        self._more = 0  # that were too many to be looked at
        self._asked: list[int] = []  # ids of those of which the next two are known
        self._place = ""
        self._is_fresh = False
        self._was_told = False  # that there are some
        self._in_optimizers: list[nn.Parameter] = []  # of those that lasted, since they were taken

    def graph_seen(self, leaves: Sequence[torch.Tensor], watched: Iterable[nn.Parameter]) -> None:
        """`leaves`: those of a graph that no watched model has."""
        found = [
            leaf
            for leaf in leaves
            if type(leaf) is nn.Parameter
            and number_of(leaf) > 0
            and id(leaf) not in self._elsewhere
            and has_memory(leaf)
        ]
        self._more = len(found[_MOST:])
        new: dict[int, _Known] = {}
        unknown: list[nn.Parameter] = []
        for leaf in found[:_MOST]:
            known = self._known.get(id(leaf))
            if known is not None and known.parameter() is leaf:
                new[id(leaf)] = known._replace(is_lasting=True)
            else:
                unknown.append(leaf)
        shapes = {leaf.shape for leaf in unknown}
        copies = set(first_elements_of([p for p in watched if p.shape in shapes]))
        for leaf, first in zip(unknown, first_elements_of(unknown), strict=True):
            if len(set(first)) > 1 and first in copies:
                self._elsewhere.add(id(leaf))
            else:
                state = leaf._version, first
                new[id(leaf)] = _Known(weakref.ref(leaf), state, is_lasting=False)
        self._known = new

    def take_from_optimizers(self) -> list[nn.Parameter]:
        """Those that turned out to be in an optimizer since this was asked last."""
        found, self._in_optimizers = self._in_optimizers, []
        return found

    def _changed(self) -> Iterator[int]:
        """Ids of those that something else changes, or that are gone."""
        same: dict[int, nn.Parameter] = {}
        for key, known in self._known.items():
            parameter = known.parameter()
            is_there = parameter is not None and parameter.requires_grad and has_memory(parameter)
            if parameter is not None and is_there and parameter._version == known.state[0]:
                same[key] = parameter
            else:
                yield key
        for key, first in zip(same, first_elements_of(list(same.values())), strict=True):
            if first != self._known[key].state[1]:
                yield key

    def told(self, in_any_optimizer: Callable[[], set[int]]) -> Told | None:
        """At a step; None: there is nothing to tell, as far as it is known."""
        for key in list(self._changed()):
            self._elsewhere.add(key)
            del self._known[key]
        lasting = [known.parameter() for known in self._known.values() if known.is_lasting]
        kept = [p for p in lasting if p is not None and p.grad is not None]
        if kept and [id(parameter) for parameter in kept] != self._asked:
            held = in_any_optimizer()
            self._elsewhere |= held
            self._in_optimizers += [parameter for parameter in kept if id(parameter) in held]
            self._known = {key: known for key, known in self._known.items() if key not in held}
            kept = [parameter for parameter in kept if id(parameter) not in held]
            self._asked = [id(parameter) for parameter in kept]
            drawn = [_is_drawn(parameter) for parameter in kept]
            self._is_fresh = True in drawn and False not in drawn
            self._place = place_of(kept[0]) if kept else ""
        self._was_told = self._was_told or bool(kept)
        if not self._was_told:
            return None
        if not kept:
            return Told(0, "", False, 0)
        return Told(len(kept), self._place, self._is_fresh, self._more)
