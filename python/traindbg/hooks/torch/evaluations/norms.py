"""How far the running statistics of batch norms are from those of the batches.

A step moves a running value by `momentum` of the way to that of the batch. So the batch's own
mean and variance are told by the running ones before and after the step, and nothing has to be
looked at in between. Without a momentum, None, the running values are the mean of all batches.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import may_read

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST = 4  # norms that are looked at: the first ones, and the last


class Gap(NamedTuple):
    """Of the norm that is farthest away."""

    place: str
    size: float  # of the typical channel: mean in deviations, or deviation as a share
    momentum: float  # the batch's share of the running values
    left: float  # the share of the running values that is still what they started with
    is_of_all: bool = False  # they are the mean of all batches: there is no momentum


class _Kept(NamedTuple):
    place: str
    norm: weakref.ref[Any]
    counted: int
    mean: torch.Tensor
    variance: torch.Tensor


def _batches(norm: Any) -> int:
    return int(norm.num_batches_tracked)


def _share_of(norm: Any, batches: int) -> float:
    """What share of the running values the last of so many batches is."""
    return 1 / batches if norm.momentum is None else float(norm.momentum)


class Norms:
    """The running statistics when a step began."""

    def __init__(self, models: Iterable[tuple[nn.Module, str]]) -> None:
        found = [
            (prefix + name, module)
            for model, prefix in models
            if model.training
            for name, module in model.named_modules()
            if isinstance(module, nn.modules.batchnorm._BatchNorm)
            and module.training
            and isinstance(module.running_mean, torch.Tensor)
            and isinstance(module.num_batches_tracked, torch.Tensor)
        ]
        if len(found) > _MOST:
            found = [*found[: _MOST - 1], found[-1]]
        self._kept: list[_Kept] = []
        for place, norm in found:
            mean, variance = norm.running_mean, norm.running_var
            if mean.numel() == 0 or not may_read(mean) or capturing_graph(mean):
                continue  # on a device each would be waited for
            with own_operations():
                kept = (mean.clone(), variance.clone())
            self._kept.append(_Kept(place, weakref.ref(norm), _batches(norm), *kept))

    def standing(self) -> str:
        """A norm of momentum 0 that saw batches, and still has mean 0 and variance 1; or empty."""
        for place, kept, counted, mean, variance in self._kept:
            norm = kept()
            if norm is None or norm.momentum != 0 or counted < 1:
                continue
            with own_operations():
                if not bool(mean.any()) and bool((variance == 1).all()):
                    return place
        return ""

    def gap(self) -> Gap | None:
        """After the step's forward pass. None: no norm saw one batch in it."""
        worst: Gap | None = None
        for place, kept, counted, mean, variance in self._kept:
            norm = kept()
            if norm is None or _batches(norm) != counted + 1:
                continue
            share = _share_of(norm, counted + 1)
            if not 1e-6 < share <= 1 or (norm.momentum is None and counted == 0):
                continue
            with own_operations():
                batch_mean = mean + (norm.running_mean - mean) / share
                batch_variance = variance + (norm.running_var - variance) / share
                deviation = variance.clamp_min(1e-12).sqrt()
                shift = (batch_mean - mean).abs() / deviation
                scale = (batch_variance.clamp_min(0).sqrt() / deviation - 1).abs()
                size = float(torch.maximum(shift, scale).median())
            if worst is None or size > worst.size:
                is_of_all = norm.momentum is None
                left = 0.0 if is_of_all else (1 - share) ** (counted + 1)
                worst = Gap(place, size, share, left, is_of_all)
        return worst

    def noise(self) -> tuple[float, str] | None:
        """How far a batch is off, of a step with several of them, and where. None: there was none.

        The running mean moved by a weighted mean of theirs, and noise does so less, the more there
        are of them: by the root of what the weights amount to.
        """
        worst: tuple[float, str] | None = None
        for place, kept, counted, mean, variance in self._kept:
            norm = kept()
            many = 0 if norm is None else _batches(norm) - counted
            if norm is None or norm.momentum is None or many < 2 or not 1e-6 < norm.momentum < 1:
                continue
            left = (1 - norm.momentum) ** many
            weights = [norm.momentum * (1 - norm.momentum) ** k for k in range(min(many, 1000))]
            amount = sum(weights) ** 2 / sum(weight * weight for weight in weights)
            with own_operations():
                moved = (norm.running_mean - mean).abs() / (1 - left)
                off = float((moved / variance.clamp_min(1e-12).sqrt()).median()) * amount**0.5
            if worst is None or off > worst[0]:
                worst = off, place
        return worst
