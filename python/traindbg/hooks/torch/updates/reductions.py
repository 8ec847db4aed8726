"""Gradients that are averaged over processes in copies, and used as each process has them.

    flat = torch.cat([p.grad.flatten() for p in parameters])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()  # and never copied back

Between a backward pass and the optimizer's step `all_reduce` is given tensors that together have as
many elements as all gradients, and none of which lies where a gradient does; and the gradients are
as backward left them. Or the gradients themselves are reduced when the step is over, and none of
them before it. That they differ from process to process, the rules see. Numbers alone, such
as losses, are not counted. Only shapes and addresses are looked at, at steps that are due.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import version_of
from traindbg.hooks.torch.base.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_State = tuple[int, int, int]  # a gradient: its id, version and address


def listening_reduce(
    who: Callable[[], Callable[[Any], None] | None], original: Callable[..., Any]
) -> Callable[..., Any]:
    """`who()`: who hears of the tensor of `all_reduce` now."""

    @functools.wraps(original)
    def all_reduce(*args: Any, **kwargs: Any) -> Any:
        hears = None if torch.compiler.is_compiling() else who()
        if hears is not None:
            guarded("reductions", hears, args[0] if args else kwargs.get("tensor"))
        return original(*args, **kwargs)

    return all_reduce


def _memory_of(tensor: torch.Tensor) -> int:
    address: int = tensor.untyped_storage().data_ptr()
    return address


def _is_counted(tensor: Any) -> bool:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        return False
    return tensor.layout is torch.strided and tensor.numel() > 1  # sparse ones have no one storage


def _states(parameters: Iterable[torch.Tensor]) -> dict[int, _State]:
    gradients = ((p, p.grad) for p in parameters if _is_counted(p))
    return {
        id(p): (id(gradient), version_of(gradient), gradient.data_ptr())
        for p, gradient in gradients
        if gradient is not None and gradient.layout is torch.strided
    }


class Reductions:
    """One per recording. Follows one step; keeps numbers only."""

    def __init__(self) -> None:
        self._to_come: dict[int, torch.Size] | None = None  # gradients to be reduced after a step
        self._are_late = False  # all of them were
        self.clear()

    def clear(self) -> None:
        """A step begins, or a backward pass."""
        self._elements = 0  # of tensors that were reduced since the last backward pass
        self._memory: set[int] = set()  # where they lie
        self._left: dict[int, _State] | None = None  # when the first of them was reduced

    def reduced(self, tensor: Any, parameters: Callable[[], Iterable[torch.Tensor]]) -> None:
        """`all_reduce` is about to be called on it; `parameters`: of the watched models."""
        if not _is_counted(tensor) or not tensor.is_floating_point():
            return
        if self._left is None:
            self._left = _states(parameters())
        self._elements += tensor.numel()
        self._memory.add(_memory_of(tensor))

    def reduced_after(self, tensor: Any, parameters: Callable[[], Iterable[torch.Tensor]]) -> None:
        """`all_reduce` is about to be called on it, after a step and before a backward pass."""
        if not _is_counted(tensor):
            return
        if self._to_come is None:
            gradients = (p.grad for p in parameters())
            self._to_come = {_memory_of(g): g.shape for g in gradients if _is_counted(g)}
        memory = _memory_of(tensor)
        if self._to_come.get(memory) == tensor.shape:
            del self._to_come[memory]
            self._are_late = not self._to_come

    def are_late(self) -> bool:
        """Whether all gradients of the step before were reduced when it was over. Once."""
        are_late, self._are_late, self._to_come = self._are_late, False, None
        return are_late

    def told(self, optimizer: torch.optim.Optimizer) -> bool | None:
        """An optimizer is about to step. None: copies of its gradients were not reduced."""
        left, elements, memory = self._left, self._elements, self._memory
        self.clear()
        if left is None:
            return None
        held = [p for group in optimizer.param_groups for p in group["params"] if _is_counted(p)]
        gradients = [p.grad for p in held if p.grad is not None]
        if any(gradient.layout is not torch.strided for gradient in gradients):
            return None
        if not gradients or sum(gradient.numel() for gradient in gradients) != elements:
            return None
        if any(_memory_of(gradient) in memory for gradient in gradients):
            return False
        now = _states(held)
        return len(now) == len(gradients) and all(left.get(key) == now[key] for key in now)
