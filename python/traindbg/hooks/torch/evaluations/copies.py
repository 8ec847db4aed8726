"""Evaluations of a copy of a watched model, which nobody watches, in training mode.

    average = copy.deepcopy(model)      # in training mode, as the model was when it was copied
    ...
    model.eval()                        # not the one that is evaluated

So it goes with averages of the weights. After some steps, and when a loss is computed without
gradients for which no watched model was called, copies are looked for: modules of the class of a
watched model, with its parameters' names and shapes, that were never given a gradient. Where all of
them are in evaluation mode nothing more is done. Where one is in training mode, and something in it
acts by its mode, a global hook hears whether it is the one that is called without gradients: from
where gradients are switched off (`evaluations.standby`) or such a loss was computed, to the next
module that is called with gradients. In which mode it was called last counts: for the statistics of
its batch norms it is called in training mode. Nothing is kept alive.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from traindbg import _core
from traindbg.hooks.torch.base.compiled import compiler_in_use, our_hooks
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.evaluations.module_modes import acts_by_mode
from traindbg.hooks.torch.evaluations.standby import standby

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from traindbg.hooks.torch.base.watched import WatchedModels

_is_compiling = torch.compiler.is_compiling
_STEPS_BEFORE = 25  # the first look
_MOST_SEARCHES = 4
_MOST_EVALUATIONS = 8  # that are listened to
_MOST_IN_VAIN = 2000  # times that gradients were switched off, and no copy was called
_MOST_COPIES = 16


class Found(NamedTuple):
    """Of the copy that was called."""

    modules: int  # that act as in training
    place: str  # the first of them, by its name in the watched model


def _shapes(model: nn.Module) -> list[tuple[str, torch.Size]]:
    return [(name, parameter.shape) for name, parameter in model.named_parameters()]


def _acting(model: nn.Module) -> list[str]:
    """What acts as in training, of a model that is in training mode as a whole."""
    if not model.training:
        return []
    return [name for name, part in model.named_modules() if part.training and acts_by_mode(part)]


class Copies:
    """One per recording, one thread."""

    def __init__(
        self, watched: WatchedModels, hot: _core.HotPath, called: Callable[[Found, Any], None]
    ) -> None:
        """`called`: told of each call, with the first input."""
        self._watched = watched
        self._hot = hot
        self._tell = called
        self._handle: Any = None
        self.forget()

    def forget(self) -> None:
        """Another model or training begins."""
        self.end()
        self._copies: list[tuple[weakref.ref[nn.Module], str]] = []  # and its model's prefix
        self._searches = self._evaluations = self._in_vain = 0
        self._since = -1  # how many steps were made before the evaluation under way
        self._called: tuple[int, Found] | None = None  # after how many steps
        self._thread = 0

    def look(self) -> None:
        """At a step that is due: whether there is a copy in training mode, once."""
        if self._searches > 0 or self._hot.steps < _STEPS_BEFORE or compiler_in_use():
            return
        self._searches += 1
        self._copies = self._search()
        if self._is_in_training():
            self._thread = threading.get_ident()
            standby.wait(self)

    def end(self) -> None:
        """Listens no more."""
        standby.leave(self)
        self._take_off()

    def evaluated(self) -> Found | None:
        """A loss was computed without gradients, of no watched model.

        What it was computed of, if that was heard, and is a copy in training mode.
        """
        if compiler_in_use():
            self.end()
            return None
        called, self._called = self._called, None
        self._thread, steps = threading.get_ident(), self._hot.steps
        if steps != self._since:
            self._since, self._in_vain = steps, 0
            self._evaluations += 1
            if self._searches < _MOST_SEARCHES and not self._alive():
                self._searches += 1
                self._copies = self._search()
        if self._evaluations > _MOST_EVALUATIONS or not self._is_in_training():
            self.end()
        else:
            self._listen()
        return called[1] if called is not None and called[0] == steps else None

    def _alive(self) -> list[nn.Module]:
        return [alive for copy, _ in self._copies if (alive := copy()) is not None]

    def _is_in_training(self) -> bool:
        return any(map(_acting, self._alive()))

    def _search(self) -> list[tuple[weakref.ref[nn.Module], str]]:
        models = self._watched.models()
        inside = {id(part) for model, _ in models for part in model.modules()}
        found: list[tuple[weakref.ref[nn.Module], str]] = []
        with_modes = (model for model, _ in models if any(map(acts_by_mode, model.modules())))
        for kind in {type(model) for model in with_modes}:
            for thing in _core.instances_of(kind, exact=True):
                if id(thing) in inside or len(found) >= _MOST_COPIES:
                    continue
                prefix = self._copied_from(thing)
                if prefix is not None:
                    found.append((weakref.ref(thing), prefix))
        return found

    def _copied_from(self, thing: nn.Module) -> str | None:
        """The prefix of the watched model that it is a copy of; None: of none."""
        if any(parameter.grad is not None for parameter in thing.parameters()):
            return None  # it is trained itself
        shapes = _shapes(thing)
        for model, prefix in self._watched.models():
            if shapes and type(model) is type(thing) and shapes == _shapes(model):
                return prefix
        return None

    # What is heard.

    def _listen(self) -> None:
        if self._handle is None:
            standby.leave(self)
            self._handle = register_module_forward_pre_hook(self._hear)
            our_hooks.add(self._handle.id)

    def _take_off(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()
            our_hooks.discard(handle.id)

    def _wait(self) -> None:
        """For the next evaluation."""
        self._take_off()
        standby.wait(self)

    def evaluation_may_begin(self) -> None:
        """Gradients were switched off, or a module left training mode."""
        alive = self._alive()
        is_proper = not any(copy.training for copy in alive)
        if alive and threading.get_ident() != self._thread:
            standby.wait(self)
            return
        if alive and is_proper:
            self._called = None
            standby.wait(self)
            return
        self._in_vain += 1
        if alive and self._in_vain <= _MOST_IN_VAIN and not compiler_in_use():
            self._listen()

    def training_goes_on(self) -> None:
        """A pass of the training was seen after all."""
        if self._handle is not None:
            self._wait()

    def _hear(self, module: nn.Module, args: Any) -> None:
        if _is_compiling() or threading.get_ident() != self._thread:
            return
        guarded("copies", self._called_now, module, args)

    def _called_now(self, module: nn.Module, args: Any) -> None:
        if torch.is_grad_enabled():
            self._wait()  # the training goes on
            return
        for copy, prefix in self._copies:
            if copy() is not module:
                continue
            # One in evaluation mode may have been in training mode before, for batch norms.
            self._called = None
            acting = _acting(module)
            if acting:
                found = Found(len(acting), prefix + acting[0])
                self._called = self._hot.steps, found
                self._tell(found, args[0] if args else None)
            return
