"""Trainings in which no optimizer of PyTorch steps: a step ends where weights were changed.

    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= lr * p.grad
            p.grad = None

At the end of a backward pass, or of `torch.autograd.grad` for parameters, a few weights are looked
at. Whatever is heard next, a loss, a forward pass, a backward pass, an evaluation, a value of the
user's or the end, asks whether they have changed: if so, the step ended in between. If not, the
passes are micro-batches of one step.

Weights are taken as the first pass of a step leaves them, before the update, as with an optimizer.
Gradients may be gone when the update is noticed. So they are copied where they are due, and the
copy is that of the last pass, or of the last clip; it is dropped when the step ends.

All of it ends when an optimizer that answers for a watched model steps: that one drives then.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch

from traindbg import _core
from traindbg.hooks.torch.base.compiled import compiler_in_use
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.leaves import Leaves, leaves_of
from traindbg.hooks.torch.base.parameters import Owner, number_of, owned_in, role_of
from traindbg.hooks.torch.base.shards import local_part
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.steps.in_backward import in_backward
from traindbg.hooks.torch.updates.changes import Changes, Found

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.watched import WatchedModels

_TRAIN = _core.TRAIN
_PARAMETERS = _core.ROLE_BITS["weight"] | _core.ROLE_BITS["bias"]
_GRADIENT = _core.ROLE_BITS["gradient"]
_BEFORE = _core.ROLE_BITS["gradient_before"]
_UPDATES = _core.ROLE_BITS["weight_update"]
# Weights that an optimizer has may change for other reasons before its first step: a perturbation
# whose gradients are wanted, say. So often they do without a step of it, its steps are not heard;
# where torch.compile is in use, that is likely.
_CHANGES_OF_AN_OPTIMIZER = 10
_CHANGES_BESIDE_A_COMPILER = 3
# What is copied before it is known whether weights are changed by hand: bytes.
_MOST_AT_FIRST = 1 << 26


class Host(Protocol):
    """Who ends steps (the recording)."""

    def step_by_hand(self) -> int: ...
    def stop_by_hand(self, answer: int) -> None: ...


class Drivers(Protocol):
    """Who knows which optimizer drives (`steps.drivers`)."""

    def trains_by_hand(self) -> None: ...


class Unseen(Protocol):
    """Who says what is not captured (`base.unseen`)."""

    def say(self, key: str, what: str, why: str) -> None: ...


class _Known(NamedTuple):
    """A parameter of a watched model."""

    parameter: weakref.ref[torch.Tensor]
    owner: Owner


class _Copy:
    """What a parameter held before the update."""

    def __init__(self, known: _Known, parameter: torch.Tensor) -> None:
        self.known = known
        self.shape = parameter.shape
        self.clone: torch.Tensor | None = None  # None: it is among the native copies


def _optimizers_have(owned: set[int]) -> bool:
    """Whether an optimizer of PyTorch's has one of these. Goes through all objects."""
    for thing in _core.instances_of(torch.optim.Optimizer):
        if "param_groups" in vars(thing):
            for group in thing.param_groups:
                if any(id(parameter) in owned for parameter in group["params"]):
                    return True
    return False


class ByHand:
    """One per recording. Holds weak references, and copies from a pass to the update after it."""

    def __init__(
        self,
        host: Host,
        tensors: Tensors,
        watched: WatchedModels,
        drivers: Drivers,
        unseen: Unseen,
        hot: _core.HotPath,
    ) -> None:
        self.is_open = False  # no optimizer drives
        self.is_on = False  # steps are found by changed weights
        self.is_compiled = False  # the step of an optimizer
        # For what trains, where passes reach nothing that is watched.
        self.search: Callable[[Any, list[torch.Tensor] | None], None] | None = None
        self._host = host
        self._tensors = tensors
        self._watched = watched
        self._drivers = drivers
        self._unseen = unseen
        self._hot = hot
        self._changes = Changes()
        self._found = 0  # changes, until it was known whose they are
        self._are_owned: bool | None = None  # by an optimizer
        self._is_first_pass = True  # of the step
        self._root: weakref.ref[torch.Tensor] | None = None  # of the pass under way
        self._takes_places = False  # other tensors take the places of those before, at each step
        self._answer = 0  # of the session, when a step ended
        self._owners: dict[int, Owner] | None = None  # that `_known` was made for
        self._known: list[_Known] = []
        self._has_leaves = False  # watched are tensors that no module holds
        self._smallest: tuple[weakref.ref[torch.Tensor], str] | None = None
        self._stop_listening: Callable[[], None] | None = None
        self._forget_copies()

    # Whether it is needed.

    def open(self, has_optimizer: bool) -> None:
        """No optimizer drives, up to now; whether it is known that there is one."""
        if not self.is_open:
            self.is_open = True
            self._are_owned, self._found = None, 0
            if not compiler_in_use():  # what it traces of the function would be traced anew
                self._stop_listening = patches.listen_to_grad()
        if has_optimizer:
            self._are_owned = True
        models = self._watched.models()
        self._has_leaves = any(isinstance(model, Leaves) for model, _ in models)
        self.step_begins()

    def close(self) -> None:
        """An optimizer drives, or the recording ends."""
        self.is_open = self.is_on = False
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        self._hot.due &= ~patches.ENDS_OF_PASSES
        self._changes.forget()
        self._forget_copies()
        self._known, self._owners, self._smallest = [], None, None
        self._is_first_pass = True

    def step_begins(self) -> None:
        """Asks for what is heard of ordinary steps only where something is due."""
        if self.is_open:
            self._hot.due |= patches.ENDS_OF_PASSES

    def begin_on(self) -> None:
        """From now on steps are found by changed weights."""
        if not self.is_on:
            self.is_on = True
            self._drivers.trains_by_hand()
            self._unseen.say(
                "by hand",
                "what updates the weights: its learning rate, settings and state",
                "steps were found by weights that had changed after a backward pass, because "
                + (
                    "the optimizer's step is compiled, and not heard"
                    if self.is_compiled
                    else "no step of an optimizer of PyTorch was heard"
                ),
            )

    # What is heard.

    def look(self, value: Any = None) -> None:
        """Something other than an update is heard: the step has ended if weights have changed.

        `value`: what was computed of them, if that is known.
        """
        if self._changes.waits and not in_backward():
            guarded("by hand", self._look, value)

    def pass_begins(self, root: Any) -> None:
        """Of backward. Raises TrainingStopped where the step before ended, and that was asked."""
        if not self.is_open or in_backward():
            return
        self.look(root)
        guarded("by hand", self._follow, root)
        self._root = weakref.ref(root) if isinstance(root, torch.Tensor) else None
        answer, self._answer = self._answer, 0
        self._host.stop_by_hand(answer)

    def pass_ended(self, gradients: dict[int, torch.Tensor] | None = None) -> None:
        """`gradients`: by ids of parameters, of `autograd.grad`; None: they are in `.grad`."""
        if self.is_open and not in_backward():
            guarded("by hand", self._pass_ended, gradients)

    def wants(self, root: Any, inputs: Sequence[Any]) -> bool:
        """Whether `torch.autograd.grad` for these computes the gradients of a training."""
        if not self.is_open or in_backward():
            return False
        self.look(root)
        guarded("by hand", self._follow, root)
        if self._has_any(inputs):
            return True
        leaves = [x for x in inputs if isinstance(x, torch.Tensor) and x.is_leaf]
        if self.search is not None and leaves:
            guarded("by hand", self.search, root, leaves)
        return self._has_any(inputs)

    def _has_any(self, tensors: Sequence[Any]) -> bool:
        owners = self._watched.owners()
        return any(id(tensor) in owners for tensor in tensors)

    def clipped(self, parameters: Iterable[Any], norm: Any) -> None:
        """The gradients in `.grad` were clipped."""
        if self.is_open and self._gradients:
            guarded("by hand", self._clipped, {id(parameter) for parameter in parameters}, norm)

    def at_end(self) -> None:
        """Nothing more is heard."""
        self.look()
        # What an update made in the place of others shows when it is used, and it is not any more.
        if self._takes_places and self._changes.waits:
            guarded("by hand", self._step_ended)

    def smallest(self) -> tuple[torch.Tensor, str] | None:
        """The smallest parameter that had a gradient, and its name."""
        known = None if self._smallest is None else self._smallest[0]()
        return None if known is None or self._smallest is None else (known, self._smallest[1])

    def _follow(self, value: Any) -> bool:
        """Whether `value` was computed of tensors that took the places of those that are known."""
        if not self._has_leaves or value is None:
            return False
        leaves = leaves_of(value)
        has_others = False
        for model, _ in self._watched.models():
            if isinstance(model, Leaves) and model.follow(leaves):
                has_others = True
        if has_others:
            self._takes_places = True
            self._watched.parts_changed()
        return has_others

    def _are_replaced(self) -> bool:
        """Whether a module has got other parameters than those that were looked at."""
        owners = self._watched.owners()
        if owners is self._owners or self._owners is None:
            return False
        missing = [tensor for tensor in self._changes.tensors() if id(tensor) not in owners]
        before = {self._owners[id(t)].path for t in missing if id(t) in self._owners}
        # Else their model is watched no more.
        return any(owner.path in before for owner in owners.values())

    def _look(self, value: Any) -> None:
        found = self._changes.found()
        if self._follow(value) or (found is Found.SAME and self._are_replaced()):
            found = Found.CHANGED
        if found is Found.SAME:
            return
        if found is Found.GONE and any(number_of(p) for p in self._now()):
            found = Found.CHANGED  # others took their places
        if self.is_on if found is Found.GONE else self._is_by_hand():
            self._step_ended()
        self._changes.forget()
        self._forget_copies()
        self._is_first_pass = True

    def _step_ended(self) -> None:
        self.begin_on()
        self._changes.forget()
        self._answer |= self._host.step_by_hand()

    def _is_by_hand(self) -> bool:
        if self.is_on:
            return True
        self._found += 1
        if self._are_owned is None:
            self._are_owned = _optimizers_have({id(p) for p in self._now()})
        if self.is_compiled or not self._are_owned:
            return True
        needed = _CHANGES_BESIDE_A_COMPILER if compiler_in_use() else _CHANGES_OF_AN_OPTIMIZER
        return self._found >= needed

    def _now(self) -> list[torch.Tensor]:
        """All parameters of watched models."""
        return [p for model, _ in self._watched.models() for p in model.parameters()]

    def _parameters(self) -> list[tuple[torch.Tensor, _Known]]:
        owners = self._watched.owners()
        alive = [(known.parameter(), known) for known in self._known]
        if self._owners is not owners or any(parameter is None for parameter, _ in alive):
            self._watched.parts_changed()  # also those that were put in behind PyTorch's back
            self._owners = self._watched.owners()
            self._known = [
                _Known(weakref.ref(parameter), owner)
                for model, prefix in self._watched.models()
                for parameter, owner in owned_in(model, prefix)
                if number_of(parameter) > 0
            ]
            alive = [(known.parameter(), known) for known in self._known]
        return [(parameter, known) for parameter, known in alive if parameter is not None]

    def _pass_ended(self, gradients: dict[int, torch.Tensor] | None) -> None:
        parameters = self._parameters()

        def gradient_of(parameter: torch.Tensor) -> torch.Tensor | None:
            return parameter.grad if gradients is None else gradients.get(id(parameter))

        reached = [pair for pair in parameters if gradient_of(pair[0]) is not None]
        if not reached:
            root = None if self._root is None else self._root()
            if self.search is not None and root is not None:
                count, self._root = len(self._watched.watchers), None
                self.search(root, None)
                if len(self._watched.watchers) > count:  # found: the pass was its own
                    self._pass_ended(gradients)
            return
        self._changes.remember([parameter for parameter, _ in reached])
        smallest, known = min(reached, key=lambda pair: pair[0].numel())
        self._smallest = (weakref.ref(smallest), known.owner.path)
        if self._are_owned and not self.is_on and not self.is_compiled:
            return  # an optimizer will step
        size = sum(parameter.numel() * parameter.element_size() for parameter, _ in parameters)
        may_copy = self.is_on or size <= _MOST_AT_FIRST
        due = self._hot.due
        if self._is_first_pass:
            self._is_first_pass = False
            if due & _PARAMETERS:
                self._take_weights(parameters)
            if due & _UPDATES and may_copy:
                self._copy(reached)
        if due & (_GRADIENT | _BEFORE) and may_copy:
            self._unclipped.clear()
            self._norms.clear()
            self._keep([(known, gradient_of(parameter)) for parameter, known in reached])

    # What is taken.

    def _forget_copies(self) -> None:
        self._gradients: dict[str, tuple[_Known, torch.Tensor]] = {}  # by names
        self._unclipped: dict[str, tuple[_Known, torch.Tensor]] = {}
        self._norms: list[Any] = []
        self._copies: list[_Copy] = []
        self._native: _core.CopiedTensors | None = None

    def _take_weights(self, parameters: list[tuple[torch.Tensor, _Known]]) -> None:
        ids = [
            self._id(role, role, known, parameter)
            for parameter, known in parameters
            for role in (role_of(known.owner.path),)
        ]
        self._tensors.take_batch(ids, [parameter for parameter, _ in parameters])

    def _id(self, prefix: str, role: str, known: _Known, tensor: torch.Tensor) -> int:
        name = f"{prefix}/{known.owner.path}"
        return self._tensors.tensor_id(name, role, tensor, known.owner)

    def _keep(self, found: Iterable[tuple[_Known, torch.Tensor | None]]) -> None:
        """Copies gradients, where they are due, into what is there of the pass before."""
        with own_operations():
            for known, gradient in found:
                if gradient is None:
                    continue
                part = local_part(gradient.detach())
                if capturing_graph(part):
                    continue
                before = self._gradients.get(known.owner.path)
                there = None if before is None else before[1]
                if (
                    there is not None
                    and there.layout is part.layout is torch.strided
                    and there.shape == part.shape
                    and there.dtype is part.dtype
                    and there.device == part.device
                ):
                    there.copy_(part)
                else:
                    there = part.clone()
                self._gradients[known.owner.path] = (known, there)

    def _clipped(self, clipped: set[int], norm: Any) -> None:
        again = [(known.parameter(), known) for known, _ in self._gradients.values()]
        if not self._unclipped:
            self._unclipped = dict(self._gradients)
        for parameter, known in again:
            if parameter is not None and id(parameter) in clipped:
                del self._gradients[known.owner.path]
                self._keep([(known, parameter.grad)])
        if norm is not None:
            self._norms.append(norm.detach() if isinstance(norm, torch.Tensor) else norm)

    def _copy(self, reached: list[tuple[torch.Tensor, _Known]]) -> None:
        own = list({id(pair[0]): pair for pair in reversed(reached)}.values())[::-1]  # each once
        self._copies = [_Copy(known, parameter) for parameter, known in own]
        on_device = list(range(len(own)))
        if not self._tensors.on_device_only:
            self._native = self._tensors.session.copy([parameter for parameter, _ in own])
            on_device = self._native.on_device
        with own_operations():
            for position in on_device:
                parameter = own[position][0]
                if not capturing_graph(parameter):
                    self._copies[position].clone = local_part(parameter.detach()).clone()

    def take(self) -> None:
        """The step ends: takes the gradients that its update used, and what the update did."""
        due = self._hot.due
        if due & _GRADIENT:
            self._take_gradients("gradient", self._gradients.values())
        if due & _BEFORE:
            self._take_gradients("gradient_before", (self._unclipped or self._gradients).values())
            for number, norm in enumerate(self._norms, 1):
                name = "gradient_before/total_norm" + (f"#{number}" if number > 1 else "")
                tensor_id = self._tensors.tensor_id(name, "gradient_before", None, None)
                self._tensors.take_number(tensor_id, norm)
        if self._copies and due & _UPDATES:
            self._take_updates()

    def _take_gradients(self, role: str, kept: Iterable[tuple[_Known, torch.Tensor]]) -> None:
        pairs = list(kept)
        ids = [self._id(role, role, known, gradient) for known, gradient in pairs]
        self._tensors.take_batch(ids, [gradient for _, gradient in pairs])

    def _take_updates(self) -> None:
        now: dict[str, torch.Tensor] = {}
        for model, prefix in self._watched.models():  # it may be another tensor by now
            now.update((owner.path, parameter) for parameter, owner in owned_in(model, prefix))
        updates: list[int] = []
        ratios: list[int] = []
        after: list[torch.Tensor | None] = []
        for copy in self._copies:
            path, owner = copy.known.owner.path, copy.known.owner
            parameter = now.get(path)
            tensor = parameter if parameter is not None and parameter.shape == copy.shape else None
            take_id = self._tensors.tensor_id
            updates.append(take_id(f"weight_update/{path}", "weight_update", tensor, owner))
            ratios.append(take_id(f"update_ratio/{path}", "weight_update", None, owner))
            after.append(tensor)
        if self._native is not None:
            self._tensors.session.observe_updates(_TRAIN, updates, ratios, self._native, after)
        for position, copy in enumerate(self._copies):
            tensor = after[position]
            if copy.clone is not None and tensor is not None:
                part = local_part(tensor.detach())
                if part.shape == copy.clone.shape:
                    self._tensors.take_update(updates[position], ratios[position], copy.clone, part)
