"""Follows values through the operations of few steps, below autograd, in the main thread alone.

A sum keeps nothing of a constant in its graph: what a loss is computed from without a graph is seen
only while it is computed. `slopes` and `added_numbers` say what is followed, and where it may end.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils import _python_dispatch

from traindbg.hooks.torch.base.compiled import our_hooks
from traindbg.hooks.torch.base.flow import Follower
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.names import tensors_in

if TYPE_CHECKING:
    from torch import nn

    from traindbg._core import HotPath

_MOST_OPERATIONS = 10_000  # that are followed in a step
_WAY_NANOS = 4_000  # of an operation into Python and back, which cannot be timed from there

_is_compiling = torch.compiler.is_compiling


def is_main_thread() -> bool:
    """Whether this is the main one."""
    return threading.get_ident() == threading.main_thread().ident


def numbers_in(value: Any) -> list[torch.Tensor]:
    """Its plain tensors; but what is true or false, or an index, has no gradient."""
    return [
        tensor
        for _, tensor in tensors_in(value)
        if type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout == torch.strided
        and (tensor.is_floating_point() or tensor.is_complex())
    ]


class StepFollower(Follower):
    """Follows values through the operations of a step: a mode of the main thread, until `end`.

    Of that thread alone, because only a mode's own thread can take it off, and a thread that ends
    with one can end the process. Where another thread calls `end`, the mode falls silent, and goes
    with the next call of a module.
    """

    def __init__(self, hot: HotPath) -> None:
        """`hot` holds the time's account."""
        super().__init__({})
        self._hot = hot
        self._operations = 0
        self._is_entered = False
        self._handle = register_module_forward_pre_hook(self._called)
        our_hooks.add(self._handle.id)
        _all.add(self)

    @property
    def is_lost(self) -> bool:
        """There were too many operations."""
        return self._operations >= _MOST_OPERATIONS

    def go_on(self) -> None:
        """Begins, or ends a pause."""
        if self.is_on and torch._C._len_torch_dispatch_stack() == 0:
            self.__enter__()
            self._is_entered = True

    def pause(self) -> None:
        """Takes the mode off, but not from under one of the training's own."""
        if self._is_entered and _python_dispatch._get_current_dispatch_mode() is self:
            self.__exit__(None, None, None)
            self._is_entered = False

    def end(self) -> None:
        """For good. Anybody may call it, and again."""
        self.is_on = False
        self.pause()
        if not self._is_entered:
            self._handle.remove()
            our_hooks.discard(self._handle.id)

    def module_called(self, module: nn.Module, args: Any) -> None:
        """In the main thread, while values are followed."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs) if kwargs else func(*args)
        begin = time.perf_counter_ns()
        if self.is_on:
            guarded("values followed", self._follow, func, args, kwargs or {}, result)
            self._operations += 1
            self.is_on = not self.is_lost
        self._hot.nanos += time.perf_counter_ns() - begin + _WAY_NANOS
        return result

    def _called(self, module: nn.Module, args: Any) -> None:
        if _is_compiling():
            return
        if not self.is_on:
            self.end()
        elif is_main_thread():
            begin = time.perf_counter_ns()
            guarded("values followed", self.module_called, module, args)
            self._hot.nanos += time.perf_counter_ns() - begin


_all: weakref.WeakSet[StepFollower] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for following in list(_all):
        following.end()


os.register_at_fork(after_in_child=_after_fork_in_child)
