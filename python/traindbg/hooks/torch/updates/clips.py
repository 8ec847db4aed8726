"""Whether gradients are clipped where there are none: after they are cleared, before backward.

Only at steps that are looked at. That there are none is seen: each is None or zero. So gradients
that were made by `torch.autograd.grad`, or put into `.grad` by hand, are clipped in time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import brought
from traindbg.hooks.torch.base.shards import has_values

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.tensors import Tensors


class _Clip(NamedTuple):
    parameters: set[int]  # their ids
    limit: float  # of the norm; 0: not known


def _is_plain(gradient: torch.Tensor) -> bool:
    """Whether its values can be asked for now, and are all here."""
    is_dense = has_values(gradient) and gradient.layout == torch.strided
    return is_dense and not capturing_graph(gradient)


def _are_none(parameters: list[Any]) -> bool:
    """Whether there is no gradient but zeros. Waits for a device where some are not None."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    with own_operations():
        return all(_is_plain(gradient) and not bool(gradient.any()) for gradient in gradients)


class Clips:
    """Of the step under way."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._waiting: list[_Clip] = []  # of no gradients, and no pass came since
        self._in_vain: list[_Clip] = []
        self._in_time = 0

    def clipped(self, parameters: list[Any], limit: Any, is_before: bool) -> None:
        """Gradients were clipped; `is_before`: before any backward pass of the step."""
        if not is_before or not _are_none(parameters):
            self._in_time += 1
            return
        known = float(limit) if isinstance(limit, (int, float)) else 0.0
        self._waiting.append(_Clip({id(parameter) for parameter in parameters}, known))

    def backward_begins(self) -> None:
        """What was clipped so far were no gradients of this pass."""
        self._in_vain += self._waiting
        self._waiting = []

    def will_step(self, optimizer: torch.optim.Optimizer) -> None:
        """The optimizer whose steps count is about to step."""
        in_vain, in_time = self._in_vain, self._in_time
        self._waiting, self._in_vain, self._in_time = [], [], 0
        if in_time:
            self._tensors.fact("clipped_in_vain", 0.0)
            return
        found = False
        farthest = (0.0, 0.0, 0.0)  # above its limit: how far, the norm, the limit
        for clip in in_vain:
            gradients = [
                parameter.grad
                for group in optimizer.param_groups
                for parameter in group["params"]
                if id(parameter) in clip.parameters and parameter.grad is not None
            ]
            if not gradients or not all(map(_is_plain, gradients)):
                continue
            with own_operations():
                each = [torch.linalg.vector_norm(one.float()) for one in gradients]
                norms = [float(norm) for norm in brought(each)]
            norm = sum(one * one for one in norms) ** 0.5
            found = found or norm > 0
            # Where the optimizer takes a scale off by itself, the norm is not what it uses.
            if clip.limit > 0 and getattr(optimizer, "grad_scale", None) is None:
                farthest = max(farthest, (norm / clip.limit, norm, clip.limit))
        if not found:
            return
        self._tensors.fact("clipped_in_vain", 1.0)
        if farthest[0] > 0:
            self._tensors.fact("clip_limit", farthest[2])
            self._tensors.fact("clip_norm", farthest[1])
