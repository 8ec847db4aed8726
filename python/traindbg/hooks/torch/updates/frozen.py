"""Modules whose parameters require no gradients, as initialised, or though the module says so.

Those that train their biases alone (BitFit) only where most modules do: a projection that is meant
to be random stands beside others. What is asked of weights is told when the step ends.
"""

from __future__ import annotations

import types
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import nn

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.ids import IdentityTable
from traindbg.hooks.torch.base.later import packed
from traindbg.hooks.torch.base.parameters import number_of
from traindbg.hooks.torch.updates.fresh import are_phases, phases_of
from traindbg.hooks.torch.updates.resume import Fresh, is_random_table
from traindbg.hooks.torch.updates.untrained import first_part

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Mapping

    import torch

    from traindbg.hooks.torch.base.later import Later
    from traindbg.hooks.torch.updates.untrained import Own, Places

_MOST = 64


class Said(NamedTuple):
    """A module that was to be set free by an attribute, which PyTorch does not read."""

    place: str
    parameters: int  # none of which requires a gradient


def _codes_of(value: Any) -> Iterator[types.CodeType]:
    """Those of a function, a property or a method, and of the functions inside."""
    for each in (value, *(getattr(value, name, None) for name in ("fget", "fset", "__func__"))):
        waiting = [getattr(each, "__code__", None)]
        while waiting:
            code = waiting.pop()
            if isinstance(code, types.CodeType):
                yield code
                waiting += code.co_consts


def _knows_the_word(kind: type) -> bool:
    """Whether a class has code of its own about `requires_grad`: the attribute is for that."""
    classes = (each for each in kind.__mro__ if each is not nn.Module)
    values = (value for each in classes for value in vars(each).values())
    return any("requires_grad" in code.co_names for value in values for code in _codes_of(value))


class SaidToTrain:
    """Modules with `module.requires_grad = True`, where `requires_grad_(True)` is meant.

    One per recording. Where a parameter was seen to require a gradient since, the attribute is a
    word of the user's own.
    """

    def __init__(self) -> None:
        self._agreed: weakref.WeakSet[nn.Module] = weakref.WeakSet()

    def find(self, modules: Mapping[str, nn.Module]) -> list[Said]:
        """`modules`: by their places."""
        found = []
        for place, module in modules.items():
            if module.__dict__.get("requires_grad") is not True or module in self._agreed:
                continue
            parameters = [p.requires_grad for p in module.parameters()]
            if any(parameters):
                self._agreed.add(module)
            elif parameters and not _knows_the_word(type(module)):
                found.append(Said(place, len(parameters)))
        return found


class _Candidate(NamedTuple):
    place: str
    module: nn.Module
    kept: Own  # its parameters that require no gradients
    weight: nn.Parameter  # the largest of these
    is_new: bool


class Frozen:
    """One per recording."""

    def __init__(self, later: Later) -> None:
        self._later = later
        self._known: IdentityTable[tuple[float, ...]] = IdentityTable()  # first elements of weights

    def ask(
        self, places: Places, reached: Container[int], told: Callable[[set[str]], None]
    ) -> None:
        """Tells the places of those that are frozen, when the step ends.

        `reached`: ids of parameters that ever had a gradient.
        """
        candidates, biased, with_matrices = self._candidates(places, reached)
        new = [one for one in candidates if one.is_new]
        fresh = Fresh([(one.module, name, p) for one in new for name, p in one.kept])
        phases = [phases_of(one.module) for one in new]
        with own_operations():
            firsts = packed([first_part(one.weight) for one in candidates])
        asked = [*fresh.asked, *(x for x in phases if x is not None)]

        def heard(values: list[torch.Tensor]) -> None:
            drawn = iter(fresh.told(values[: len(fresh.asked)]))
            numbers = iter(values[len(fresh.asked) : len(asked)])
            are_angles = iter(
                [x is not None and are_phases(next(numbers).tolist()) for x in phases]
            )
            elements: dict[int, tuple[float, ...]] = {}
            for part, host in zip(firsts, values[len(asked) :], strict=True):
                elements.update((at, tuple(x.tolist())) for at, x in part.unpacked(host))
            frozen: set[str] = set()
            for at, one in enumerate(candidates):
                is_drawn = [next(drawn) for _ in one.kept] if one.is_new else []
                is_meant = next(are_angles) if one.is_new else False
                if len(frozen) >= _MOST:
                    continue
                if id(one.weight) not in self._known:
                    is_random = True in is_drawn and False not in is_drawn
                    if is_meant or not (is_random or is_random_table(one.module, one.weight)):
                        continue
                # Something else may set them: an average of other weights, say.
                if self._known.first_of(one.weight, elements[at]) == elements[at]:
                    frozen.add(one.place)
            is_apart = 2 * len(biased & frozen) <= with_matrices
            told(frozen - biased if is_apart else frozen)

        self._later.ask("loop", [*asked, *(part.together for part in firsts)], heard)

    def _candidates(
        self, places: Places, reached: Container[int]
    ) -> tuple[list[_Candidate], set[str], int]:
        """Those that may be; places of those that train biases; how many modules have matrices."""
        found: list[_Candidate] = []
        biased: set[str] = set()
        with_matrices = 0
        for place, module, own in places:
            matrices = [(name, p) for name, p in own if p.dim() > 1]
            with_matrices += bool(matrices)
            is_biased = any(p.requires_grad or p.grad is not None for _, p in own)
            kept = matrices if is_biased else own
            if not kept or any(p.requires_grad or p.grad is not None for _, p in kept):
                continue
            if any(number_of(p) == 0 for _, p in own):
                continue
            if any(id(p) in reached for _, p in kept):
                continue
            weight = max((p for _, p in kept), key=lambda p: p.numel())
            if capturing_graph(weight):
                continue
            found.append(_Candidate(place, module, kept, weight, id(weight) not in self._known))
            if is_biased:
                biased.add(place)
        return found, biased, with_matrices
