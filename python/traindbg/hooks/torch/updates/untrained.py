"""Modules that an optimizer holds and that stay as they are: not called, cut off, multiplied by 0.

Asked only of modules none of whose parameters ever had a gradient while others have one, or of
which every gradient is zero. What nobody trains is known between two looks, too: an optimizer's
step, a copy or an average raises the version of a parameter or changes its first elements. Whether
a module is used all the same is followed through the values of two forward passes (`base.flow`).
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from traindbg.hooks.torch.base.compiled import compiler_in_use, our_hooks
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.flow import Flow, Zeros
from traindbg.hooks.torch.base.ids import Identities
from traindbg.hooks.torch.base.later import brought, may_read
from traindbg.hooks.torch.base.parameters import number_of
from traindbg.hooks.torch.base.shards import local_part
from traindbg.hooks.torch.base.sources import LIBRARYS, USERS, sources
from traindbg.hooks.torch.evaluations.modes import modes
from traindbg.hooks.torch.updates.resume import are_fresh

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from traindbg.hooks.torch.base.teller import Teller
    from traindbg.hooks.torch.base.watched import WatchedModels

_is_compiling = torch.compiler.is_compiling
_graph_task = getattr(torch._C, "_current_graph_task_id", None)
FIRST_ELEMENTS = 16
_MOST_FOLLOWED = 2  # forward passes whose values are followed
_MOST_EVALUATIONS = 3  # that are listened to
_MOST_CALLS = 24  # steps in which modules' calls are listened to for the modules here
_MOST_MODULES = 256  # that are looked at
_ZERO_LOOKS = 8  # looks at which a gradient was zero, before it is asked why
_PART = 4096  # elements of a gradient that are looked at first

Own = list[tuple[str, nn.Parameter]]
Places = list[tuple[str, nn.Module, Own]]


def first_part(parameter: torch.Tensor) -> torch.Tensor:
    """The first few elements, where they are."""
    return local_part(parameter.detach()).flatten()[:FIRST_ELEMENTS]


def first_elements(parameter: torch.Tensor) -> tuple[float, ...]:
    """The first few; none where they cannot be asked for now."""
    if capturing_graph(parameter):
        return ()
    with own_operations():
        return tuple(first_part(parameter).tolist())


def first_elements_of(parameters: Sequence[torch.Tensor]) -> list[tuple[float, ...]]:
    """The same of many. Waits once for each device."""
    with own_operations():
        parts = {
            number: first_part(parameter)
            for number, parameter in enumerate(parameters)
            if not capturing_graph(parameter)
        }
        found = dict(zip(parts, brought(list(parts.values())), strict=True))
        return [
            tuple(found[number].tolist()) if number in found else ()
            for number in range(len(parameters))
        ]


class Calls:
    """Listens to which modules with parameters are called in one training step, and in which order.

    By a global hook, as forward passes are looked at: one on a module itself would be copied with
    it, and makes some modules compute in another way. It sees no values. It is taken off at the end
    of the step.
    """

    def __init__(self, models: Iterable[tuple[nn.Module, str]]) -> None:
        self.order: dict[int, bool] = {}  # module id -> whether gradients were on at a call of it
        self._thread = threading.get_ident()
        self._wanted = {
            id(module)
            for model, _ in models
            for module in model.modules()
            if next(module.parameters(recurse=False), None) is not None
            or sources.owner_of_forward(module) == LIBRARYS
        }
        self._handle = register_module_forward_pre_hook(self._called)
        our_hooks.add(self._handle.id)

    def _called(self, module: nn.Module, args: Any) -> None:
        if _is_compiling():  # the rest would be compiled, or end the compiling
            return
        key = id(module)
        if key not in self._wanted or threading.get_ident() != self._thread:
            return
        if _graph_task is None or _graph_task() == -1:
            self.order[key] = self.order.get(key, False) or torch.is_grad_enabled()

    def end(self) -> None:
        self._handle.remove()
        our_hooks.discard(self._handle.id)


class _Evaluation(Calls):
    """The same in one evaluation: until a module is called with gradients."""

    def _called(self, module: nn.Module, args: Any) -> None:
        if not _is_compiling() and torch.is_grad_enabled():
            self.end()
            return
        super()._called(module, args)


def _any_of(gradients: list[torch.Tensor]) -> list[float | torch.Tensor]:
    """Numbers, one of which is not 0 if some element is not zero. Waits for no device.

    Of gradients in host memory a glance is enough for most.
    """
    with own_operations():
        parts = [local_part(gradient.detach()) for gradient in gradients]
        parts = [part._values() if part.is_sparse else part for part in parts]
        if any(map(capturing_graph, parts)):
            return [1.0]
        glances = [part.reshape(-1)[:_PART] for part in parts if part.is_contiguous()]
        for here in (glances, parts):
            if any(may_read(part) and bool(part.any()) for part in here):
                return [1.0]
        return [part.any() for part in parts if not may_read(part)]


def _outermost(place: str, places: Iterable[str], chosen: set[str]) -> str:
    """The outermost module around `place` all of whose places are chosen."""
    others = [other for other in places if other not in chosen]
    names = place.split(".")
    for number in range(1, len(names)):
        around = ".".join(names[:number])
        if not any(other == around or other.startswith(f"{around}.") for other in others):
            return around
    return place


def _has_own_storage(parameter: nn.Parameter) -> bool:
    if type(parameter) is not nn.Parameter or parameter.layout != torch.strided:
        return False
    size = parameter.numel() * parameter.element_size()
    return bool(parameter.untyped_storage().nbytes() == size)


class Untrained:
    """Follows the steps that are due. One per recording."""

    def __init__(self, teller: Teller, models: WatchedModels) -> None:
        self._teller = teller
        self._models = models
        self._states: dict[str, list[tuple[int, tuple[float, ...]]]] = {}  # of parameters, by place
        self._elsewhere: set[str] = set()  # places that something else sets, or that are copies
        self._called = Identities()  # ids of modules that were heard, in evaluations, too
        self._steps_heard = 0
        self._followed = 0
        self._suspects: list[str] = []  # whose values are to be followed
        self._parts: list[str] = []  # the same of single parameters, beside others that are trained
        self._parts_followed = 0
        self._cut: set[str] = set()
        self._read: set[str] = set()  # single parameters whose values became Python's numbers
        self._uncalled: list[str] = []
        self._evaluations = 0
        self._evaluation: _Evaluation | None = None
        self._flow: Flow | None = None
        self._not_zero = Identities()  # ids of modules that had a gradient that is not
        self._zero: dict[str, int] = {}  # at how many looks in a row, by place
        self._asked = 0
        self._by_zero: set[str] = set()
        self._zeros: Zeros | None = None
        self._told: set[str] = set()
        modes.listener = weakref.WeakMethod(self._evaluation_begins)

    def is_set_elsewhere(self, place: str) -> bool:
        """Whether something else than its gradients changes it, as an average is."""
        return place in self._elsewhere

    # Moments of a step.

    def wants_calls(self) -> bool:
        """Whether the calls of the step that begins are to be listened to."""
        return bool(self._uncalled) and self._steps_heard < _MOST_CALLS

    def begin(self) -> None:
        """A step begins that is due."""
        suspects = set(self._suspects) if self._followed < _MOST_FOLLOWED else set()
        parts = set(self._parts) if self._parts_followed < _MOST_FOLLOWED else set()
        if not (suspects or parts) or compiler_in_use():
            return
        self._followed += bool(suspects)
        self._parts_followed += bool(parts)
        sources: dict[str, list[nn.Parameter]] = {}
        for place, _, own in self._places():
            if place in suspects:
                sources[place] = [p for _, p in own if p.requires_grad]
            sources.update({f"{place}.{n}": [p] for n, p in own if f"{place}.{n}" in parts})
        self._flow = Flow(self._models.models(), sources, parts, self._models.called_by_parts())

    def clear(self) -> None:
        """Takes everything off that listens in a step."""
        for listening in (self._flow, self._zeros, self._evaluation):
            if listening is not None:
                listening.end()
        self._flow = self._zeros = None
        if self._evaluation is not None:
            self._remember_called(self._evaluation.order)
            self._evaluation = None

    def _remember_called(self, heard: Container[int]) -> None:
        for model, _ in self._models.models():
            self._called.remember(m for m in model.modules() if id(m) in heard)

    def backward_begins(self, root: Any, passes: int) -> None:
        """Of `root`, as the step's pass of this number."""
        if self._flow is not None:
            self._flow.backward_begins(root)
        if self._zeros is not None:
            self._zeros.end()
            self._zeros = None  # what a further pass adds is not looked at
        wanted = {place for place, looks in self._zero.items() if looks >= _ZERO_LOOKS}
        wanted -= self._by_zero
        if not wanted or passes > 1 or self._asked >= _MOST_FOLLOWED or compiler_in_use():
            return
        if not isinstance(root, torch.Tensor):
            return
        self._asked += 1
        places = self._places()
        self._zeros = Zeros(
            root,
            {id(p): place for place, _, own in places if place in wanted for _, p in own},
            {id(p) for _, module, own in places if id(module) in self._not_zero for _, p in own},
        )

    def backward_ended(self) -> None:
        if self._zeros is not None:
            self._zeros.end()

    def _evaluation_begins(self, module: nn.Module) -> None:
        """A module is set to evaluation mode."""
        if not self._uncalled or self._evaluations >= _MOST_EVALUATIONS or compiler_in_use():
            return
        if self._evaluation is None and any(module is m for m, _ in self._models.models()):
            self._evaluations += 1
            self._evaluation = _Evaluation(self._models.models())

    def _places(self) -> Places:
        return [
            (prefix + path if path else prefix.rstrip(".") or "model", module, own)
            for model, prefix in self._models.models()
            for path, module in model.named_modules()
            if (own := list(module.named_parameters(recurse=False)))
        ]

    # What is told where the optimizer is about to step.

    def tell(
        self,
        places: Places,
        missed: set[str],
        first: set[str],
        calls: Calls | None,
        trained: set[int],
    ) -> None:
        """Of modules that were not reached.

        `missed`: those none of whose parameters in the optimizer ever had a gradient; `first`: of
        them, those that were called before all that are trained, which are told of elsewhere.
        `trained`: ids of parameters that had one.
        """
        if calls is not None and calls.order:
            self._steps_heard += 1
            self._remember_called(calls.order)
        candidates = self._untouched(places, missed, trained)
        modules = {place: (module, own) for place, module, own in places}
        heard = self._steps_heard > 0
        suspects = [p for p in candidates if p not in first] if heard else []
        self._suspects = [place for place in suspects if place not in self._cut]
        if self._flow is not None and self._flow.was_followed:
            self._cut |= self._flow.found
        cut = [place for place in suspects if place in self._cut]
        rest = [place for place in suspects if place not in self._cut]
        self._uncalled = [p for p in rest if id(modules[p][0]) not in self._called]
        unused = [place for place in rest if place not in self._uncalled]
        every = [place for place, _, _ in places]
        self._tell("cut_modules", cut, every)
        if cut:
            loaded = all(
                True not in fresh and False in fresh
                for fresh in (_fresh(*modules[place]) for place in cut)
            )
            order = {} if calls is None else calls.order
            off = all(order.get(id(modules[place][0])) is False for place in cut)
            self._teller.fact("cut_modules_loaded", float(loaded))
            self._teller.fact("cut_modules_without_gradients", float(off))
        # Once it is known that their values go nowhere.
        is_followed = self._followed >= _MOST_FOLLOWED or not heard
        uncalled = self._uncalled if is_followed else []
        self._tell("uncalled_modules", uncalled, every)
        if uncalled:
            fresh = [True in _fresh(*modules[place]) for place in uncalled[:_MOST_MODULES]]
            self._teller.fact("uncalled_modules_fresh", float(any(fresh)))
            every_module = {
                prefix + path: module
                for model, prefix in self._models.models()
                for path, module in model.named_modules()
            }
            by_library = all(
                self._is_left_out_by_library(place, every_module)
                for place in uncalled[:_MOST_MODULES]
            )
            self._teller.fact("uncalled_modules_by_library", float(by_library))
        self._tell("unused_modules", unused if is_followed else [], every)

    def _is_left_out_by_library(self, place: str, modules: dict[str, nn.Module]) -> bool:
        """Whether the module that would call it is of an installed package, which has its reasons.

        Such as the later stages of an encoder of which fewer were asked for. `modules`: all, by
        their places; the models themselves by their prefixes.
        """
        roots = {prefix for _, prefix in self._models.models()}
        while place not in roots:
            # The model's own place ends with the dot of its prefix.
            above = place.rpartition(".")[0]
            place = above if above in modules else next((r for r in roots if r == above + "."), "")
            parent = modules.get(place)
            if parent is None:
                return False
            owner = sources.owner_of_forward(parent)
            has_run = place in roots or id(parent) in self._called
            if owner == USERS or (owner == LIBRARYS and has_run):
                return owner == LIBRARYS
        return False

    def tell_parts(self, parts: Places, trained: set[int]) -> None:
        """Of single parameters that never had a gradient, of modules others of which had one.

        `parts`: each as a place of its own. `trained`: ids of parameters that had a gradient.
        """
        # Where several lie in one storage, their values cannot be told apart.
        alone = [part for part in parts if _has_own_storage(part[2][0][1])]
        candidates = self._untouched(alone, {place for place, _, _ in alone}, trained)
        self._parts = [place for place in candidates if place not in self._cut]
        if self._flow is not None and self._flow.was_followed:
            self._cut |= self._flow.found
            self._read |= self._flow.read
        self._tell_places("cut_parameters", [p for p in candidates if p in self._cut])
        # Once it is known that nothing is computed with the numbers, as far as that can be seen.
        is_followed = self._parts_followed >= _MOST_FOLLOWED
        rest = self._read - self._cut if is_followed else set()
        self._tell_places("read_parameters", [p for p in candidates if p in rest])

    def _tell_places(self, fact: str, places: list[str]) -> None:
        """Tells how many there are and the first one; none only where there were some."""
        if places:
            self._told.add(fact)
            self._teller.fact(fact, len(places), places[0])
        elif fact in self._told:
            self._teller.fact(fact, 0)

    def tell_zeros(self, places: Places, trained: set[int]) -> None:
        """Of modules whose gradients were all zero at every look. `trained`: ids, in this step."""
        zeros, self._zeros = self._zeros, None
        asked: list[float | torch.Tensor] = [] if zeros is None else zeros.asked
        of_zeros = slice(0, len(asked))
        of: list[tuple[str, nn.Module, slice]] = []  # where the numbers of each module are
        for place, module, own in places:
            if id(module) in self._not_zero:
                continue
            gradients = [p.grad for _, p in own if id(p) in trained]
            there = [g for g in gradients if g is not None and g.numel() > 0]
            if not there or len(there) < len(gradients):
                continue
            numbers = _any_of(there)
            of.append((place, module, slice(len(asked), len(asked) + len(numbers))))
            asked += numbers

        def told(is_any: list[float]) -> None:
            if zeros is not None:
                self._by_zero |= zeros.found(is_any[of_zeros])
            zero: dict[str, int] = {}
            for place, module, numbers in of:
                if any(is_any[numbers]):
                    self._not_zero.remember([module])
                else:
                    zero[place] = self._zero.get(place, 0) + 1
            self._zero = zero
            self._by_zero &= zero.keys()
            is_alone = not self._not_zero  # nothing else has a gradient either
            found = [] if is_alone else [place for place in zero if place in self._by_zero]
            self._tell("zeroed_modules", found, [place for place, _, _ in places])

        self._teller.later.ask_numbers("loop", asked, told)

    def _tell(self, fact: str, chosen: list[str], places: list[str]) -> None:
        """The same of modules, by the outermost one that is chosen as a whole."""
        first = [_outermost(chosen[0], places, set(chosen))] if chosen else []
        self._tell_places(fact, [*first, *chosen[1:]])

    def _untouched(self, places: Places, missed: set[str], trained: set[int]) -> list[str]:
        """Of the missed ones, those that nothing has changed since they were seen first."""
        found: list[str] = []
        reached: dict[tuple[int, ...], set[tuple[float, ...]]] = {}
        asked = [
            (place, own)
            for place, _, own in places
            if place in missed
            and place not in self._elsewhere
            and not any(number_of(p) == 0 for _, p in own)  # another rank has it, or none as yet
        ]
        firsts = iter(first_elements_of([p for _, own in asked for _, p in own]))
        for place, own in asked:
            states = [(_version_of(p), next(firsts)) for _, p in own]
            if len(found) >= _MOST_MODULES:
                break
            known = self._states.get(place)
            if known is None:
                self._states[place] = states
                if not reached:
                    sizes = {
                        tuple(p.shape) for name, _, o in places if name in missed for _, p in o
                    }
                    others = [
                        p
                        for _, _, o in places
                        for _, p in o
                        if id(p) in trained and tuple(p.shape) in sizes
                    ]
                    for p, first in zip(others, first_elements_of(others), strict=True):
                        reached.setdefault(tuple(p.shape), set()).add(first)
                if self._is_copy(own, states, reached):
                    self._elsewhere.add(place)
                    continue
            elif known != states:
                self._elsewhere.add(place)  # trained by hand, an average, a target
                continue
            found.append(place)
        return found

    @staticmethod
    def _is_copy(
        own: Own,
        states: list[tuple[int, tuple[float, ...]]],
        reached: dict[tuple[int, ...], set[tuple[float, ...]]],
    ) -> bool:
        """A target network before it is first updated: it has the values of one that is trained."""
        elements = [first for _, first in states]
        return any(len(set(first)) > 1 for first in elements) and all(
            first in reached.get(tuple(p.shape), ())
            for (_, p), first in zip(own, elements, strict=True)
        )


def _version_of(parameter: nn.Parameter) -> int:
    """Another one after each change in place, and where `.data` is another tensor."""
    is_plain = type(parameter) is nn.Parameter and parameter.layout == torch.strided
    return hash((parameter._version, parameter.data_ptr() if is_plain else 0))


def _fresh(module: nn.Module, own: Own) -> list[bool | None]:
    return are_fresh([(module, name, p) for name, p in own])
