"""Slopes that a loss is made of, and that were taken without a graph.

    (slope,) = torch.autograd.grad(u.sum(), x)          # create_graph=True is missing
    loss = (slope - u).pow(2).mean() + boundary

The equation of a physics-informed net, the penalty of a critic's gradient: without `create_graph`
the slope is a number, and the loss pulls on the weights as if it could not be changed by them.

Told where a gradient by a leaf that is no parameter was taken of something that trained weights
lead to, without a graph; where the loss that trains the same weights was computed from it; and
where it was not given to a model, as an adversarial example is. What the loss is computed from is
followed through the operations of few steps (`torch_flow.Follower`). No tensor is kept.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.utils import _python_dispatch

from traindbg.hooks import torch_patches as patches
from traindbg.hooks.torch_compiled import compiler_in_use, our_hooks
from traindbg.hooks.torch_flow import Follower
from traindbg.hooks.torch_guard import guarded
from traindbg.hooks.torch_leaves import leaves_of
from traindbg.hooks.torch_names import tensors_in
from traindbg.hooks.torch_sources import Line, sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import nn

    from traindbg.hooks.torch_watched import WatchedModels

_MOST_FOLLOWED = 3  # steps
_MOST_STEPS = 10  # due ones, in which it is waited for a slope
_SOURCE = "slope"

_is_compiling = torch.compiler.is_compiling
_graph_task = getattr(torch._C, "_current_graph_task_id", None)


class Teller(Protocol):
    """Who takes facts (`torch_tensors`)."""

    def fact(self, name: str, value: float, place: str = "", evaluation: bool = False) -> None: ...


class Slopes:
    """Follows the steps that are due. One per recording."""

    def __init__(self, teller: Teller, watched: WatchedModels) -> None:
        self._teller = teller
        self._watched = watched
        self._stop_listening: Callable[[], None] | None = None
        self._steps = 0
        self._followed = 0
        self._is_open = False
        self._follower: Follower | None = None
        self._thread = 0
        self._handle: Any = None
        self._modules: set[int] = set()  # ids of the watched models' modules
        self._asked: set[int] = set()  # ids of the weights that what is asked of leads to
        self._weights: set[int] = set()  # the same of all slopes of the step
        self._line: Line | None = None  # where the first one was taken
        self._found: bool | None = None  # a loss of the step is made of one

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
        self._end()
        self._is_open, self._found = False, None
        self._weights, self._line = set(), None
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None

    def grad_begins(self, outputs: Any, inputs: Sequence[Any], goes_on: bool) -> None:
        """`torch.autograd.grad`, and whether its results shall have a graph."""
        self._asked = set()
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
        slopes = [g for _, g in tensors_in(gradients) if type(g) is torch.Tensor]
        slopes = [slope for slope in slopes if not slope.requires_grad]
        if not asked or not slopes:
            return
        if self._follower is None and not self._begin_to_follow():
            return
        if self._follower is not None and threading.get_ident() == self._thread:
            self._weights |= asked
            self._follower.add(_SOURCE, slopes)

    def backward_begins(self, root: Any) -> None:
        """Of a loss: whether it is computed from a slope, and trains what that depends on."""
        follower = self._follower
        if follower is None or not isinstance(root, torch.Tensor) or not follower.of(root):
            return
        self._end()
        if any(id(leaf) in self._weights for leaf in leaves_of(root)):
            self._found = True

    def tell(self) -> None:
        """The step's passes are over."""
        if self._found is None:
            return
        if self._found and self._line is not None:
            sources.put(_SOURCE, self._line)
        self._teller.fact("slopes_without_graph", float(self._found))

    # The operations of a step.

    def _begin_to_follow(self) -> bool:
        if _is_compiling() or torch.jit.is_tracing() or self._found is not None:
            return False
        if torch._C._len_torch_dispatch_stack() != 0:
            return False
        self._followed += 1
        self._found = False
        self._line = sources.here()
        self._thread = threading.get_ident()
        self._modules = {id(m) for model, _ in self._watched.models() for m in model.modules()}
        self._handle = register_module_forward_pre_hook(self._called)
        our_hooks.add(self._handle.id)
        self._follower = Follower({})
        self._follower.__enter__()
        return True

    def _called(self, module: nn.Module, args: Any) -> None:
        guarded("slopes", self._look_at_call, module, args)

    def _look_at_call(self, module: nn.Module, args: Any) -> None:
        """A model that is given what was made of a slope shows what that is for."""
        follower = self._follower
        if follower is None or _is_compiling() or id(module) not in self._modules:
            return
        if threading.get_ident() != self._thread:
            return
        if any(follower.of(tensor) for _, tensor in tensors_in(args)):
            self._end()

    def _end(self) -> None:
        """Ends the mode; out of order (after Ctrl-C in a forward pass) it only falls silent."""
        if self._handle is not None:
            self._handle.remove()
            our_hooks.discard(self._handle.id)
            self._handle = None
        follower = self._follower
        if follower is None:
            return
        follower.is_on = False
        if _python_dispatch._get_current_dispatch_mode() is follower:
            follower.__exit__(None, None, None)
            self._follower = None


def _is_place(thing: Any) -> bool:
    """A leaf that is no parameter: points, samples, what a penalty is taken at."""
    is_plain = type(thing) is torch.Tensor  # neither a parameter nor a subclass
    return is_plain and thing.is_leaf and thing.layout == torch.strided
