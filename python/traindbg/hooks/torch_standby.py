"""Hears when an evaluation may begin, so that until then nothing is attached to a training.

A forward pass belongs to an evaluation only where gradients are off or the model is in evaluation
mode. So observers that are wanted for evaluations alone wait here, and attach themselves when
gradients are switched off or a module leaves training mode. What an optimizer does in its step,
which switches them off, too, tells nothing. When one of them sees a pass of the training after all,
they wait again.

Not heard: `torch._C._set_grad_enabled`, and `module.training = False`. A step that ends while one
of these is in force has its observers attached all the same.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, Protocol

from traindbg.hooks.torch_guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable


class Waiting(Protocol):
    """Who attaches itself."""

    def evaluation_may_begin(self) -> None: ...
    def training_goes_on(self) -> None: ...


class Standby:
    """Of the process. Keeps nothing alive; any thread may call."""

    def __init__(self) -> None:
        self.is_on = False  # somebody waits
        self.in_step = False  # of an optimizer
        self._waiting: weakref.WeakSet[Any] = weakref.WeakSet()
        self._told: weakref.WeakSet[Any] = weakref.WeakSet()  # that an evaluation may be under way

    def wait(self, observer: Waiting) -> None:
        """Tells it when an evaluation may begin: once."""
        self._waiting.add(observer)
        self.is_on = True

    def leave(self, observer: Waiting) -> None:
        """It waits no more, if it did."""
        self._told.discard(observer)
        if self.is_on:
            self._waiting.discard(observer)
            self.is_on = len(self._waiting) > 0

    def hear(self) -> None:
        """An evaluation may begin."""
        if self.in_step:
            return
        self.is_on = False
        waiting, self._waiting = self._waiting, weakref.WeakSet()
        for observer in waiting:
            guarded("forward", observer.evaluation_may_begin)
        self._told |= waiting

    def training_goes_on(self) -> None:
        """One of those that were told sees a pass of the training: no evaluation is under way."""
        told, self._told = self._told, weakref.WeakSet()
        for observer in told:
            guarded("forward", observer.training_goes_on)


standby = Standby()


def listening_switch(original: Callable[..., Any]) -> Callable[..., Any]:
    """`set_grad_enabled.__init__`, which `no_grad` calls, too."""

    @functools.wraps(original)
    def init(self: Any, mode: Any) -> None:
        original(self, mode)
        if standby.is_on and not mode:
            standby.hear()

    return init


def listening_inference(original: Callable[..., Any]) -> Callable[..., Any]:
    """`inference_mode.__enter__`."""

    @functools.wraps(original)
    def enter(self: Any) -> Any:
        result = original(self)
        if standby.is_on and self.mode:
            standby.hear()
        return result

    return enter


def listening_exit(original: Callable[..., Any]) -> Callable[..., Any]:
    """`enable_grad.__exit__`: gradients may be off again."""

    @functools.wraps(original)
    def leave(self: Any, *args: Any) -> Any:
        result = original(self, *args)
        if standby.is_on and not self.prev:
            standby.hear()
        return result

    return leave


def listening_train(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Module.train`, which `Module.eval` calls, too."""

    @functools.wraps(original)
    def train(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        if standby.is_on and not self.training:
            standby.hear()
        return result

    return train
