"""Hears when an evaluation may begin, so that until then nothing is attached to a training.

A forward pass belongs to an evaluation only where gradients are off or the model is in evaluation
mode. So observers that are wanted for evaluations alone wait here, and attach themselves when
gradients are switched off or a module leaves training mode. That optimizers and the clipping of
gradients switch them off, too, tells nothing. When one of them sees a pass of the training after
all, they wait again.

Not heard: `torch._C._set_grad_enabled`, and `module.training = False`. A step that ends while one
of these is in force has its observers attached all the same.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Protocol

import torch

from traindbg.hooks.torch.base.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

_UPDATES = ("torch.optim.optimizer", "torch.nn.utils.clip_grad")


class Waiting(Protocol):
    """Who attaches itself. Both may be called by any thread, and when it waits no more."""

    def evaluation_may_begin(self) -> None: ...
    def training_goes_on(self) -> None: ...


class Standby:
    """Of the process. Keeps nothing alive; any thread may call."""

    def __init__(self) -> None:
        self.is_on = False  # somebody waits
        self.lock = threading.RLock()  # of who attaches and detaches, for as long as that takes
        self._waiting: weakref.WeakSet[Any] = weakref.WeakSet()
        self._told: weakref.WeakSet[Any] = weakref.WeakSet()  # that an evaluation may be under way
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        self.lock = threading.RLock()  # who held it is not here

    def wait(self, observer: Waiting) -> None:
        """Tells it when an evaluation may begin: once."""
        with self.lock:
            self._waiting.add(observer)
            self.is_on = True

    def leave(self, observer: Waiting) -> None:
        """It waits no more, if it did."""
        with self.lock:
            self._told.discard(observer)
            self._waiting.discard(observer)
            self.is_on = len(self._waiting) > 0

    def hear(self) -> None:
        """An evaluation may begin."""
        with self.lock:
            waiting, self._waiting = self._waiting, weakref.WeakSet()
            self.is_on = False
            for observer in waiting:
                guarded("forward", observer.evaluation_may_begin)
            self._told |= waiting

    def training_goes_on(self) -> None:
        """One of those that were told sees a pass of the training: no evaluation is under way."""
        with self.lock:
            told, self._told = self._told, weakref.WeakSet()
            for observer in told:
                guarded("forward", observer.training_goes_on)


standby = Standby()


def _is_update(switching: FrameType | None) -> bool:
    """Whether gradients are switched by an optimizer's step or by a function that clips them.

    `switching`: what called the switch. In a step that is what its class put around it, or
    `no_grad` in the step itself or around it.
    """
    for inner in ("", "decorate_context", "step"):
        if switching is None:
            return False
        if inner and switching.f_code.co_name != inner:
            continue
        frame = switching.f_back if inner else switching
        if frame is not None and frame.f_globals.get("__name__") in _UPDATES:
            return True
    return False


def listening_switch(original: Callable[..., Any]) -> Callable[..., Any]:
    """What switches gradients: methods of `set_grad_enabled` (which `no_grad` calls) and others."""

    @functools.wraps(original)
    def switch(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if standby.is_on and not torch.is_grad_enabled():
            caller = sys._getframe(1)
            within = caller.f_back if caller.f_code.co_name in ("__enter__", "__exit__") else caller
            if not _is_update(within):
                guarded("forward", standby.hear)
        return result

    return switch


def listening_train(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Module.train`, which `Module.eval` calls, too."""

    @functools.wraps(original)
    def train(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if standby.is_on and not self.training:
            guarded("forward", standby.hear)
        return result

    return train
