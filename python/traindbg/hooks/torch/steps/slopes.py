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

import weakref
from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.compiled import compiler_in_use
from traindbg.hooks.torch.base.leaves import leaves_of
from traindbg.hooks.torch.base.names import tensors_in
from traindbg.hooks.torch.base.sources import Line, sources
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.steps.following import StepFollower, is_main_thread, numbers_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn

    from traindbg._core import HotPath
    from traindbg.hooks.torch.base.teller import Teller
    from traindbg.hooks.torch.base.watched import WatchedModels

_MOST_FOLLOWED = 3  # steps
_MOST_STEPS = 10  # due ones, in which it is waited for a slope
_SOURCE = "slope"
_PRODUCTS = frozenset({"bmm", "div", "dot", "mm", "mul", "mv"})
# Nothing would go back through these either if there were a graph.
_WITHOUT_GRADIENT = frozenset({"ceil", "floor", "round", "sgn", "sign", "trunc"})
# Losses that are given weights after what they compare.
_WITH_WEIGHTS = ("binary_cross_entropy", "nll_loss")

_is_compiling = torch.compiler.is_compiling
_graph_task = getattr(torch._C, "_current_graph_task_id", None)


class _Following(StepFollower):
    """Follows slopes through the operations of a step. Ends when a model is given one."""

    def __init__(self, hot: HotPath, modules: set[int]) -> None:
        """`hot` holds the time's account; `modules`: ids of the watched models' modules."""
        super().__init__(hot)
        self._modules = modules
        # Those that were detached share the memory of a slope; by their ids.
        self._constants: dict[int, weakref.ref[torch.Tensor]] = {}

    def of(self, tensor: torch.Tensor) -> frozenset[str]:
        constant = self._constants.get(id(tensor))
        is_constant = constant is not None and constant() is tensor
        return frozenset() if is_constant else super().of(tensor)

    def _follow(self, operation: Any, args: Any, kwargs: Any, result: Any) -> None:
        name = operation.overloadpacket.__name__.rstrip("_")
        if name in _WITHOUT_GRADIENT:
            return
        given = numbers_in(args[:2] if name.startswith(_WITH_WEIGHTS) else (args, kwargs))
        if name in _PRODUCTS and any(tensor.requires_grad for tensor in given):
            given = [tensor for tensor in given if tensor.requires_grad]
        made = numbers_in(result)
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

    def module_called(self, module: nn.Module, args: Any) -> None:
        """A model that is given what was made of a slope shows what that is for."""
        if id(module) in self._modules and any(map(self.of, numbers_in(args))):
            self.end()


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
        if not is_main_thread():
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
        if any(map(following.of, numbers_in(root))):
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
