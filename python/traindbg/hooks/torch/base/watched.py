"""The models of one recording, and what the optimizers that step them answer for."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from torch.nn.parameter import is_lazy

from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.names import class_name
from traindbg.hooks.torch.base.parameters import Owner, Parameters, owned_in, shape_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

    from traindbg.hooks.torch.recording.watcher import Watcher


Shapes = dict[str, object]


def shapes_of(model: torch.nn.Module) -> Shapes:
    """What names stand for: shapes and element types of a model's tensors, types of its layers."""
    tensors = [*model.named_parameters(), *model.named_buffers()]
    shapes: Shapes = {name: _kind_of(tensor) for name, tensor in tensors if not is_lazy(tensor)}
    for name, module in model.named_modules():
        if not any(True for _ in module.children()):
            shapes[f"{name}()"] = type(module)
    return shapes


def _kind_of(tensor: torch.Tensor) -> object:
    try:
        return shape_of(tensor), tensor.dtype
    except Exception:  # something else, that was put among the buffers
        return type(tensor)


def are_of_others(shapes: Shapes, known: Shapes) -> bool:
    """Whether a name stands for something else in `known`: a run describes a tensor once."""
    return any(known.get(name, shape) != shape for name, shape in shapes.items())


class WatchedModels:
    """One per recording. Owns the lists of watchers and the tables of optimizers' parameters.

    A companion is trained by the same optimizer as a watched model, and is no part of it: a head, a
    decoder, a loss with weights of its own. Its parameters and buffers, their gradients and updates
    and what its modules return are captured as those of its leader; inputs, passes, evaluations and
    what facts follow from input to loss are the leader's alone.
    """

    def __init__(self) -> None:
        self.watchers: list[Watcher] = []
        self.companions: list[Watcher] = []
        self.tables: weakref.WeakKeyDictionary[torch.optim.Optimizer, Parameters] = (
            weakref.WeakKeyDictionary()
        )
        self._owners: dict[int, Owner] | None = None  # made when it is asked for
        # What the names of models begin with that were trained before, and are there yet.
        self._retired: list[tuple[weakref.ref[torch.nn.Module], str]] = []
        self._shapes: dict[str, Shapes] = {}  # of parameters, by such a prefix, since the beginning

    def prefix_of(self, model: torch.nn.Module) -> str:
        """What the names of a model's modules begin with, that of one to come included."""
        for watcher in [*self.watchers, *self.companions]:
            if watcher.model is model:
                return watcher.prefix
        self._retired = [(done, prefix) for done, prefix in self._retired if done() is not None]
        for done, prefix in self._retired:
            if done() is model:
                return prefix
        return self._free_prefix(model, "", class_name(model))

    def prefix_of_companion(self, model: torch.nn.Module, name: str) -> str:
        """The same of a companion, which the program calls `name`; empty: its class's name."""
        name = name or class_name(model)
        return self._free_prefix(model, f"{name}.", name)

    def _free_prefix(self, model: torch.nn.Module, prefix: str, name: str) -> str:
        taken = {watcher.prefix for watcher in [*self.watchers, *self.companions]}
        taken.update(prefix for _, prefix in self._retired)
        for watcher in self.watchers:  # parts of one without a prefix, and it itself
            if watcher.model is not None and not watcher.prefix:
                taken.update(f"{child}." for child, _ in watcher.model.named_children())
                taken.add("model.")
        shapes = guarded("names", shapes_of, model) or {}
        number = 2 if prefix else 1
        while prefix in taken or are_of_others(shapes, self._shapes.get(prefix, {})):
            prefix = name + (f"#{number}" if number > 1 else "") + "."
            number += 1
        return prefix

    def every(self) -> list[Watcher]:
        """Watchers and companions, in the order of their layers; those without numbers behind."""
        together = [*self.watchers, *self.companions]
        if self.companions:
            together.sort(key=lambda each: (each.first_layer is None, each.first_layer or 0))
        return together

    def numbered(self) -> list[Watcher]:
        """The same, where layers are about to be described: all have numbers from now on."""
        if self.companions:
            for watcher in [*self.watchers, *self.companions]:
                self._number(watcher)
        return self.every()

    def called(self, model: torch.nn.Module) -> None:
        """A forward pass of it begins: layers have numbers in the order in which they are used."""
        if self.companions:
            for watcher in [*self.watchers, *self.companions]:
                if watcher.model is model:
                    self._number(watcher)

    def _number(self, watcher: Watcher) -> None:
        model, leader = watcher.model, watcher.leader or watcher
        if watcher.first_layer is not None or model is None:
            return
        if not self.companions_of(leader):
            watcher.comes_after(0)
            return
        numbered = [
            each.first_layer + sum(1 for _ in other.modules())
            for each in [leader, *self.companions_of(leader)]
            if each.first_layer is not None and (other := each.model) is not None
        ]
        watcher.comes_after(max(numbered, default=0))

    def is_retired(self, model: torch.nn.Module) -> bool:
        """Whether it was trained before others, and is no longer watched for that."""
        return any(done() is model for done, _ in self._retired)

    def retire(self, watcher: Watcher) -> None:
        """Its model is done: nothing is to be known of it but its name, should it come back."""
        if watcher.model is not None and not self.is_retired(watcher.model):
            self._retired.append((weakref.ref(watcher.model), watcher.prefix))

    def add(self, watcher: Watcher) -> None:
        """One more is watched."""
        (self.watchers if watcher.leader is None else self.companions).append(watcher)
        self._owners = None
        if watcher.model is not None:
            self._shapes.setdefault(watcher.prefix, {}).update(
                guarded("names", shapes_of, watcher.model) or {}
            )

    def remove(self, watcher: Watcher) -> None:
        """It is watched no more."""
        for watchers in (self.watchers, self.companions):
            if watcher in watchers:
                watchers.remove(watcher)
        self._owners = None

    def companions_of(self, leader: Watcher) -> list[Watcher]:
        """Those that are trained with this one's model."""
        return [watcher for watcher in self.companions if watcher.leader is leader]

    def parts_changed(self) -> None:
        """Some module got another part: a watched model may have other parameters now."""
        self._owners = None
        for table in self.tables.values():
            table.is_stale = True

    def first(self) -> torch.nn.Module | None:
        """The model that was watched first; None where it is gone, or there is none."""
        return self.watchers[0].model if self.watchers else None

    def models(self) -> list[tuple[torch.nn.Module, str]]:
        """The watched models that are alive, with what the names of their modules begin with.

        Companions come behind.
        """
        alive = ((watcher.model, watcher.prefix) for watcher in [*self.watchers, *self.companions])
        return [(model, prefix) for model, prefix in alive if model is not None]

    def called_by_parts(self) -> list[torch.nn.Module]:
        """The parts of those that are never called themselves in training."""
        found: list[torch.nn.Module] = []
        for watcher in self.watchers:
            model, observer = watcher.model, watcher._observer
            if model is not None and observer is not None and observer.hears_parts_alone:
                found.extend(part for part in model.modules() if part is not model)
        return found

    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Those that stepped parameters of watched models."""
        return list(self.tables)

    def owners(self) -> dict[int, Owner]:
        """Of all parameters of watched models, by their ids; of several names, the first one."""
        if self._owners is None:
            self._owners = {}
            for watcher in self.numbered():
                model = watcher.model
                if model is None:  # some have a length, and may be empty
                    continue
                for parameter, owner in owned_in(model, watcher.prefix, watcher.first_layer or 0):
                    self._owners.setdefault(id(parameter), owner)
        return self._owners

    def owned_by(self, holders: list[Watcher]) -> Iterator[tuple[torch.nn.Parameter, Owner]]:
        """Their models' parameters in order; what several of them share is the first one's."""
        before: set[int] = set()
        for watcher in self.numbered():
            model = watcher.model
            if model is not None and watcher in holders:
                for parameter, owner in owned_in(model, watcher.prefix, watcher.first_layer or 0):
                    if id(parameter) not in before:
                        yield parameter, owner
                before.update(id(parameter) for parameter in model.parameters())

    def holders_of(self, owned: set[int]) -> list[Watcher]:
        """Those whose models have one of these parameters, which are given by their ids."""
        return [
            watcher
            for watcher in self.every()
            if (model := watcher.model) is not None
            and any(id(parameter) in owned for parameter in model.parameters())
        ]
