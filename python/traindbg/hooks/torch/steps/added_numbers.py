"""Numbers in a loss that were read from a tensor with a graph.

    residual = equation(model, points)
    loss = data + 0.1 * residual.item()     # the value is right, and the gradient lacks a term
    loss.backward()

The graph of a sum shows that something without a gradient was added, and no more. Where the loss of
a step that is looked at has such a place, the operations of a few later ones are followed, from the
first call of a watched model until the first backward pass begins. A number that was read of what
trained weights lead to is compared with those that were added on the way to the loss. It is told
of one that is, at two looks and more, the same multiple of what was read, above 0, while that
changes.

Left alone is what trains the weights by another way: a tensor that is a part of the loss itself, or
of what a later backward pass of the step begins at. So is what was added as a detached tensor,
which is meant as a constant. No tensor and no node is kept.
"""

from __future__ import annotations

import math
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn.modules.module import register_module_forward_pre_hook

from traindbg.hooks.torch.base.compiled import compiler_in_use, our_hooks
from traindbg.hooks.torch.base.flow import nodes_of
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.nodes import SAME_VALUE, edges_of, is_leaf, shape_at
from traindbg.hooks.torch.base.sources import Line, sources
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.steps.following import StepFollower, is_main_thread, numbers_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn
    from torch.utils.hooks import RemovableHandle

    from traindbg._core import HotPath
    from traindbg.hooks.torch.base.teller import Teller
    from traindbg.hooks.torch.base.watched import WatchedModels

_MOST_FOLLOWED = 6  # steps
_FEWEST_READ = 2  # steps followed: where nothing was read in these, it is not looked for any more
_MOST_NUMBERS = 8  # that are read, and that are added, in a step
_MOST_NODES = 64  # of the sum
_MOST_ASKED = 64  # tensors, in a step, whose graph is gone through
_ALIKE = 1e-6  # multiples that are the same but for rounding
_CHANGED = 1e-4  # a number, since it was seen first
_KEY = "traindbg.numbers"  # in a node's metadata: which numbers were read of what it gave
_SOURCE = "number_read"
_READ = "_local_scalar_dense"  # .item(), float(...)
_LAYERS = frozenset(
    f"{operation}Backward0"
    for operation in (
        *("Addmm", "Addmv", "Bmm", "Convolution", "Embedding", "MkldnnConvolution"),
        *("Mm", "Mv"),
    )
)
_SUMS = frozenset({"AddBackward0", "SubBackward0"})
# Between a term and the loss.
_PASSED = SAME_VALUE | {
    *("DivBackward0", "MeanBackward0", "MulBackward0", "StackBackward0", "SumBackward0")
}
# Operations whose result has what is added in it, as a term.
_LINEAR = frozenset(
    {
        *("_to_copy", "_unsafe_view", "add", "alias", "cat", "clone", "div", "mean", "mul"),
        *("reshape", "select", "squeeze", "stack", "sub", "sum", "unsqueeze", "view"),
    }
)

_is_compiling = torch.compiler.is_compiling
_graph_task = getattr(torch._C, "_current_graph_task_id", None)


def _adds_a_constant(root: torch.Tensor) -> bool:
    """By the graph: among the terms of the sum is one without a gradient."""
    waiting = [root.grad_fn]
    for _ in range(_MOST_NODES):
        if not waiting:
            break
        node = waiting.pop()
        after = edges_of(node)
        if node.name() in _SUMS:
            if math.prod(shape_at(node, 0) or ()) != 1:
                continue
            if None in after:
                return True
        elif node.name() not in _PASSED:
            continue
        waiting += [other for other in after if other is not None]
    return False


def _numbers_below(root: torch.Tensor) -> set[int]:
    """Which numbers were read of tensors that are in its graph; all, where that is too large."""
    nodes = nodes_of(root)
    if nodes is None:
        return set(range(_MOST_NUMBERS))
    kept = (getattr(node, "metadata", None) or {} for node in nodes)
    return set().union(*(each.get(_KEY, ()) for each in kept))


class _Added(NamedTuple):
    """A number that was added, and the one that it was made of, as it seems."""

    places: tuple[int, int]  # among those that were read, and that were added
    read: float
    added: float
    line: Line | None  # where it was read


class _Reading(StepFollower):
    """Knows which numbers were read, and which were added to what a tensor was computed from."""

    def __init__(self, hot: HotPath, trained: set[int]) -> None:
        """`trained`: ids of parameters."""
        super().__init__(hot)
        self._trained = trained
        self._read: list[tuple[float, Line | None]] = []
        self._added: list[float] = []
        self._asked = 0  # tensors whose graph was gone through
        # What was detached, by its id: so long as it lives, it stands for what has a graph.
        self._detached: dict[int, tuple[weakref.ref[torch.Tensor], set[int]]] = {}

    @property
    def has_read(self) -> bool:
        return bool(self._read)

    def added_to(self, root: torch.Tensor) -> list[_Added]:
        """All pairs of a number that was read and one that is a term of `root`."""
        names = sorted(map(int, self.of(root)))
        return [
            _Added((i, j), number, self._added[j], line)
            for j in names
            for i, (number, line) in enumerate(self._read)
        ]

    def _follow(self, operation: Any, args: Any, kwargs: Any, result: Any) -> None:
        name = operation.overloadpacket.__name__
        if name == _READ:
            self._note_read(args[0], result)
        elif name == "detach" and args[0].requires_grad and args[0].numel() == 1:
            numbers = self._numbers_of(args[0])
            if numbers is not None:
                self._detached[id(result)] = weakref.ref(result), numbers
        elif self._read and (name := name.rstrip("_")) in _LINEAR:
            self._note_linear(name, args, kwargs, result)

    def _numbers_of(self, tensor: torch.Tensor) -> set[int] | None:
        """Those that were read of it, to be added to; None: it does not lead to what is trained."""
        node = tensor.grad_fn
        if node is None or self._asked >= _MOST_ASKED:
            return None
        self._asked += 1
        nodes = nodes_of(tensor) or {}
        # A penalty of the weights may be added for the figure alone, where the optimizer has it.
        is_of_model = any(each.name() in _LAYERS for each in nodes)
        leaves = (each.variable for each in nodes if is_leaf(each))
        if not is_of_model or not any(id(leaf) in self._trained for leaf in leaves):
            return None
        numbers: set[int] = node.metadata.setdefault(_KEY, set())
        return numbers

    def _note_read(self, tensor: torch.Tensor, number: Any) -> None:
        if type(number) is not float or len(self._read) >= _MOST_NUMBERS:
            return
        detached, numbers = self._detached.get(id(tensor), (None, None))
        if detached is None or detached() is not tensor:
            numbers = self._numbers_of(tensor)
        if numbers is not None:
            numbers.add(len(self._read))
            self._read.append((number, sources.here()))

    def _note_linear(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        is_number = len(args) == 2 and type(args[1]) is float and not kwargs
        is_one = is_number and name in ("add", "sub") and args[0].numel() == 1
        if is_one and len(self._added) < _MOST_NUMBERS:
            self.add(str(len(self._added)), numbers_in(result))
            self._added.append(args[1] if name == "add" else -args[1])
        given = numbers_in(args)
        if name == "mul":
            if any(type(factor) is float and factor < 0 for factor in args):
                return
            # A term of the loss is multiplied by what has no gradient; a weight of it is none.
            given = [x for x in given if not any(y.requires_grad for y in given if y is not x)]
        elif name in ("div", "sub"):  # not a divisor, nor what is taken off
            if name == "div" and any(other.requires_grad for other in given[1:]):
                return
            given = numbers_in(args[0])
        names = frozenset[str]().union(*map(self.of, given))
        if names:
            for tensor in numbers_in(result):
                self._add(tensor, names)


class AddedNumbers:
    """Follows few of the steps that are due. One per recording."""

    def __init__(self, teller: Teller, watched: WatchedModels, hot: HotPath) -> None:
        self._teller = teller
        self._watched = watched
        self._hot = hot
        self._stop_listening: Callable[[], None] | None = None
        self._reading: _Reading | None = None  # of the step under way
        self._waiting: RemovableHandle | None = None  # for the first call of a model
        self.forget()

    # Moments of a step.

    def forget(self) -> None:
        """Another training begins."""
        self.clear()
        self._followed = self._with_numbers = 0
        self._adds_a_constant = False  # the last loss that was looked at
        # By the places of the two numbers: the multiple, and the number that was read first.
        self._firsts: dict[tuple[int, int], tuple[float, float]] = {}

    def clear(self) -> None:
        """Takes everything off."""
        self._end()
        self._reading = None
        self._is_open = self._was_followed = False
        self._found: _Added | None = None

    def begin(self) -> None:
        """A step begins that is due."""
        self._end()
        self._reading = None
        gives_up = self._followed >= _FEWEST_READ and self._with_numbers == 0
        self._is_open = self._followed < _MOST_FOLLOWED and not gives_up
        if self._is_open and self._adds_a_constant and not compiler_in_use():
            self._waiting = register_module_forward_pre_hook(self._called)
            our_hooks.add(self._waiting.id)

    def _called(self, module: nn.Module, args: Any) -> None:
        if not _is_compiling():
            guarded("added numbers", self._look_at_call, module)

    def _look_at_call(self, module: nn.Module) -> None:
        """A module is called in a step that is to be followed, perhaps a watched model."""
        if self._reading is not None or all(module is not m for m, _ in self._watched.models()):
            return
        if not module.training or not is_main_thread() or not torch.is_grad_enabled():
            return
        if compiler_in_use() or torch.jit.is_tracing() or torch._C._len_torch_dispatch_stack() != 0:
            return
        if _graph_task is not None and _graph_task() != -1:
            return
        self._followed += 1
        models = self._watched.models()
        trained = (p for model, _ in models for p in model.parameters() if p.requires_grad)
        self._reading = _Reading(self._hot, set(map(id, trained)))
        self._stop_listening = patches.listen_to_grad()
        self._reading.go_on()
        self._stop_waiting()

    def grad_begins(self) -> None:
        """`torch.autograd.grad`: its passes are not followed, in whatever thread they run."""
        if self._reading is not None:
            self._reading.pause()

    def grad_ended(self) -> None:
        if self._reading is not None and self._reading.is_on and is_main_thread():
            self._reading.go_on()

    def backward_begins(self, root: Any) -> None:
        """Of any pass of the step; the first one ends it."""
        if not self._is_open or type(root) is not torch.Tensor:
            return
        if self._was_followed or root.grad_fn is None or root.numel() != 1:
            if self._found is not None and self._found.places[0] in _numbers_below(root):
                self._found = None
            return
        self._was_followed = True
        self._adds_a_constant = _adds_a_constant(root)
        reading = self._reading
        self._end()
        if reading is None or reading.is_lost:
            return
        self._with_numbers += reading.has_read
        found = [pair for pair in reading.added_to(root) if self._is_multiple(pair)]
        below = _numbers_below(root) if found else set()
        self._found = next((pair for pair in found if pair.places[0] not in below), None)

    def tell(self) -> None:
        """The step's passes are over."""
        self._end()  # where no pass did: the step was left out after its forward pass had raised
        reading, self._reading = self._reading, None
        self._is_open = False
        if reading is None or reading.is_lost or not reading.has_read:
            return
        found = self._found
        if found is not None and found.line is not None:
            sources.put(_SOURCE, found.line)
        self._teller.fact("number_added", 0.0 if found is None else abs(found.added))

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.remove()
            our_hooks.discard(self._waiting.id)
            self._waiting = None

    def _end(self) -> None:
        self._stop_waiting()
        if self._reading is not None:
            self._reading.end()
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None

    def _is_multiple(self, pair: _Added) -> bool:
        if pair.read == 0 or not math.isfinite(pair.read) or not math.isfinite(pair.added):
            return False
        times = pair.added / pair.read
        known, first = self._firsts.get(pair.places, (0.0, pair.read))
        if not times > 0 or abs(times - known) > _ALIKE * times:
            self._firsts[pair.places] = times, pair.read
            return False
        return abs(pair.read - first) > _CHANGED * abs(first)
