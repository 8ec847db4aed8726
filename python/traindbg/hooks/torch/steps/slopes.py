"""Slopes that a loss is made of, and that were taken without a graph.

    (slope,) = torch.autograd.grad(u.sum(), x)          # create_graph=True is missing
    loss = (slope - u).pow(2).mean() + boundary

The equation of a physics-informed net, the penalty of a critic's gradient: without `create_graph`
the slope is a number, and the loss pulls on the weights as if it could not be changed by them.

Told where a gradient by a leaf that is no parameter was taken of something that trained weights
lead to, without a graph; where the loss that trains the same weights was computed from it; and
where it was not given to a model, as an adversarial example is. What only multiplies something
with a graph is a weight, and what was detached is meant as a constant: both are left alone.

A sum keeps nothing of a constant in its graph. So what the loss is computed from is followed
through the operations between the slope and the next backward pass, in few steps and in the main
thread alone (`_Following`). No tensor is kept.
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

from traindbg.hooks.torch.base.compiled import compiler_in_use, our_hooks
from traindbg.hooks.torch.base.flow import Follower
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.leaves import leaves_of
from traindbg.hooks.torch.base.names import tensors_in
from traindbg.hooks.torch.base.sources import Line, sources
from traindbg.hooks.torch.steps import patches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn

    from traindbg._core import HotPath
    from traindbg.hooks.torch.base.teller import Teller
    from traindbg.hooks.torch.base.watched import WatchedModels

_MOST_FOLLOWED = 3  # steps
_MOST_STEPS = 10  # due ones, in which it is waited for a slope
_MOST_OPERATIONS = 10_000  # that are followed in a step
_WAY_NANOS = 4_000  # of an operation into Python and back, which cannot be timed from there
_SOURCE = "slope"
_PRODUCTS = frozenset({"bmm", "div", "dot", "mm", "mul", "mv"})
# Nothing would go back through these either if there were a graph.
_WITHOUT_GRADIENT = frozenset({"ceil", "floor", "round", "sgn", "sign", "trunc"})
# Losses that are given weights after what they compare.
_WITH_WEIGHTS = ("binary_cross_entropy", "nll_loss")

_is_compiling = torch.compiler.is_compiling
_graph_task = getattr(torch._C, "_current_graph_task_id", None)


def _is_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _numbers_in(value: Any) -> list[torch.Tensor]:
    """Its plain tensors; but what is true or false, or an index, has no gradient."""
    return [
        tensor
        for _, tensor in tensors_in(value)
        if type(tensor) in (torch.Tensor, torch.nn.Parameter)
        and tensor.layout == torch.strided
        and (tensor.is_floating_point() or tensor.is_complex())
    ]


class _Following(Follower):
    """Follows slopes through the operations of a step: a mode of the main thread, until `end`.

    Of that thread alone, because only a mode's own thread can take it off, and a thread that ends
    with one can end the process. Where another thread calls `end`, the mode falls silent, and goes
    with the next call of a module.
    """

    def __init__(self, hot: HotPath, modules: set[int]) -> None:
        """`hot` holds the time's account; `modules`: ids of the watched models' modules."""
        super().__init__({})
        self._hot = hot
        self._modules = modules
        self._operations = 0
        self._is_entered = False
        # Those that were detached share the memory of a slope; by their ids.
        self._constants: dict[int, weakref.ref[torch.Tensor]] = {}
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

    def of(self, tensor: torch.Tensor) -> frozenset[str]:
        constant = self._constants.get(id(tensor))
        is_constant = constant is not None and constant() is tensor
        return frozenset() if is_constant else super().of(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs) if kwargs else func(*args)
        begin = time.perf_counter_ns()
        if self.is_on:
            guarded("slopes", self._follow, func, args, kwargs or {}, result)
            self._operations += 1
            self.is_on = not self.is_lost
        self._hot.nanos += time.perf_counter_ns() - begin + _WAY_NANOS
        return result

    def _follow(self, operation: Any, args: Any, kwargs: Any, result: Any) -> None:
        name = operation.overloadpacket.__name__.rstrip("_")
        if name in _WITHOUT_GRADIENT:
            return
        given = _numbers_in(args[:2] if name.startswith(_WITH_WEIGHTS) else (args, kwargs))
        if name in _PRODUCTS and any(tensor.requires_grad for tensor in given):
            given = [tensor for tensor in given if tensor.requires_grad]
        made = _numbers_in(result)
        super()._follow(operation, tuple(given), {}, made)
        if self._constants or name == "detach":
            self._keep_constant(name, given, made)

    def _keep_constant(
        self, name: str, given: list[torch.Tensor], made: list[torch.Tensor]
    ) -> None:
        """What is detached of a slope, and views of that."""
        is_detached = name == "detach" and not any(tensor.requires_grad for tensor in given)
        constant = {
            tensor.untyped_storage()._cdata
            for tensor in given
            if super(_Following, self).of(tensor) and (is_detached or not self.of(tensor))
        }
        for tensor in made:
            if tensor.untyped_storage()._cdata in constant:
                self._constants[id(tensor)] = weakref.ref(tensor)

    def _called(self, module: nn.Module, args: Any) -> None:
        if _is_compiling():
            return
        if not self.is_on:
            self.end()
        elif id(module) in self._modules and _is_main_thread():
            begin = time.perf_counter_ns()
            guarded("slopes", self._look_at_call, args)
            self._hot.nanos += time.perf_counter_ns() - begin

    def _look_at_call(self, args: Any) -> None:
        """A model that is given what was made of a slope shows what that is for."""
        if any(map(self.of, _numbers_in(args))):
            self.end()


_all: weakref.WeakSet[_Following] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for following in list(_all):
        following.end()


os.register_at_fork(after_in_child=_after_fork_in_child)


class Slopes:
    """Follows the steps that are due. One per recording."""

    def __init__(self, teller: Teller, watched: WatchedModels, hot: HotPath) -> None:
        self._teller = teller
        self._watched = watched
        self._hot = hot
        self._stop_listening: Callable[[], None] | None = None
        self._steps = 0
        self._followed = 0
        self._is_open = False
        self._following: _Following | None = None  # of the step under way
        self._asked: set[int] = set()  # ids of the weights that what is asked of leads to
        self._weights: set[int] = set()  # the same of all slopes of the step
        self._line: Line | None = None  # where the first one was taken
        self._found = False  # a loss of the step is made of one

    # Moments of a step.

    def begin(self) -> None:
        """A step begins that is due."""
        self._is_open = self._steps < _MOST_STEPS and self._followed < _MOST_FOLLOWED
        if not self._is_open:
            return
        self._steps += 1
        if self._stop_listening is None:
            self._stop_listening = patches.listen_to_grad()

    def clear(self) -> None:
        """Takes everything off."""
        if self._following is not None:
            self._following.end()
            self._following = None
        self._is_open = self._found = False
        self._weights, self._line = set(), None
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None

    def forget(self) -> None:
        """What was followed is of another training."""
        self.clear()
        self._steps = self._followed = 0

    def grad_begins(self, outputs: Any, inputs: Sequence[Any], goes_on: bool) -> None:
        """`torch.autograd.grad`, and whether its results shall have a graph."""
        self._asked = set()
        if self._following is not None:
            self._following.pause()
        if not self._is_open or goes_on or not torch.is_grad_enabled() or compiler_in_use():
            return
        if _graph_task is not None and _graph_task() != -1:
            return
        owners = self._watched.owners()
        if any(not _is_place(x) or id(x) in owners for x in inputs):
            return
        self._asked = {id(leaf) for leaf in leaves_of(outputs) if id(leaf) in owners}

    def grad_ended(self, gradients: Any) -> None:
        """It returned these."""
        asked, self._asked = self._asked, set()
        if not _is_main_thread():
            return
        slopes = [g for _, g in tensors_in(gradients) if type(g) is torch.Tensor]
        slopes = [slope for slope in slopes if not slope.requires_grad]
        if asked and slopes and self._following is None:
            self._begin_to_follow()
        following = self._following
        if following is None or not following.is_on:
            return
        if asked and slopes:
            self._weights |= asked
            following.add(_SOURCE, slopes)
        following.go_on()

    def backward_begins(self, root: Any) -> None:
        """The first one ends it: whether its loss is made of a slope, and trains the weights."""
        following = self._following
        if following is None or not following.is_on:
            return
        following.end()
        if any(map(following.of, _numbers_in(root))):
            self._found = any(id(leaf) in self._weights for leaf in leaves_of(root))

    def tell(self) -> None:
        """The step's passes are over."""
        self._is_open = False
        following = self._following
        if following is None:
            return
        following.end()
        if following.is_lost:
            return
        if self._found and self._line is not None:
            sources.put(_SOURCE, self._line)
        self._teller.fact("slopes_without_graph", float(self._found))

    def _begin_to_follow(self) -> None:
        if not self._is_open or _is_compiling() or torch.jit.is_tracing():
            return
        if torch._C._len_torch_dispatch_stack() != 0:
            return
        self._followed += 1
        self._line = sources.here()
        modules = {id(m) for model, _ in self._watched.models() for m in model.modules()}
        self._following = _Following(self._hot, modules)


def _is_place(thing: Any) -> bool:
    """A leaf that is no parameter: points, samples, what a penalty is taken at."""
    is_plain = type(thing) is torch.Tensor  # neither a parameter nor a subclass
    return is_plain and thing.is_leaf and thing.layout == torch.strided
