"""Losses that are not finite and that no backward pass is made of: a guard leaves them out.

    loss = contrast(a, b)          # written out: no loss function is called
    if torch.isfinite(loss):       # never again, from some step on
        loss.backward()
        optimizer.step()

No backward pass comes, so that nothing tells of the loss, and no step ends. Where a step is looked
at, calls of the model are heard. In a training that called it once before most of its backward
passes so far, after three calls in a row that nothing followed, a loss is looked for among the
tensors that are alive. It is one number, not finite, whose graph leads to a parameter of the model.
The step ends with it as its loss. Where a model is called several times for one backward pass (by
parts of a batch, in a rollout, up to a fixed point), other numbers may be infinite for a reason.

Six searches are made at most, each through all objects of the process.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.nodes import is_leaf, next_nodes, number_in

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.watched import WatchedModels

_TRAIN = _core.TRAIN
_AT = frozenset({3, 12, 48})  # calls in a row
_MOST_SEARCHES = 6
_FEWEST_ANSWERED = 3
_MOST_NODES = 4096


class Host(Protocol):
    """Who ends steps (the recording)."""

    def drain(self) -> None: ...
    def end_step(self) -> None: ...


class Unanswered:
    """One per recording, one thread."""

    def __init__(self, host: Host, guard: Guard, tensors: Tensors, watched: WatchedModels) -> None:
        self.guard = guard
        self._host = host
        self._hot = guard.hot
        self._tensors = tensors
        self._watched = watched
        self._step = -1
        self._root = 0  # by its id: the model that was called first in the step
        self._calls = self._searches = 0
        self._has_ended = False  # the step under way, by this
        # Steps in which one call came before the backward pass, and several.
        self._answered = self._several = 0

    def forward_begins(self, root: torch.nn.Module) -> None:
        """A watched model is called, in a step of the training that is looked at."""
        hot = self._hot
        if self._searches == _MOST_SEARCHES or hot.passes > 0:
            return
        if hot.steps != self._step:
            self._answered += self._calls == 1
            self._several += self._calls > 1 and not self._has_ended
            if id(root) != self._root:  # another training, of which nothing is known yet
                self._answered = self._several = 0
            self._step, self._root, self._calls, self._has_ended = hot.steps, id(root), 0, False
        if id(root) != self._root:
            return
        is_single = self._answered >= max(_FEWEST_ANSWERED, 4 * self._several)
        if self._calls in _AT and is_single:
            self._searches += 1
            loss = self._last_loss()
            if loss is not None:
                self._end_step(loss)
                return
        self._calls += 1

    def _end_step(self, loss: float) -> None:
        self._host.drain()
        self._tensors.take_number(self._tensors.id_of("loss", "loss", always=True), loss)
        self._has_ended = True
        self._host.end_step()

    def _last_loss(self) -> float | None:
        """None: of those that are left, none is of the model and not finite."""
        parameters = {id(p) for model, _ in self._watched.models() for p in model.parameters()}
        with own_operations():
            for tensor in _core.instances_of(torch.Tensor, exact=True):
                try:
                    value = _value_of(tensor)
                    is_found = value is not None and _leads_to(tensor.grad_fn, parameters)
                except Exception:  # of memory that is gone, of a view that may not be looked at
                    continue
                if is_found:
                    return value
        return None


def _value_of(tensor: torch.Tensor) -> float | None:
    """None: it is no loss, or finite."""
    if tensor.layout != torch.strided or tensor.numel() != 1 or not tensor.is_floating_point():
        return None
    if tensor.grad_fn is None or tensor.untyped_storage().data_ptr() == 0 or not may_read(tensor):
        return None
    value = number_in(tensor)
    return None if math.isfinite(value) else value


def _leads_to(node: Any, parameters: set[int]) -> bool:
    nodes, seen = [node], set[Any]()
    while nodes and len(seen) < _MOST_NODES:
        node = nodes.pop()
        if node in seen:
            continue
        seen.add(node)
        if is_leaf(node):
            if id(getattr(node, "variable", None)) in parameters:
                return True
            continue
        nodes += next_nodes(node)
    return False
