"""Losses that are sums, as values that can be compared with those of other batches."""

from __future__ import annotations

from typing import Any

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations

_CLASSIFIERS = frozenset({"cross_entropy", "linear_cross_entropy", "nll_loss"})


def per_target(name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `reduction="sum"` of a classification adds up, by the number of targets that count.

    So a training that divides the sum itself (transformers does, by the tokens of all accumulated
    batches) has values that can be compared with those of its evaluation, which takes the mean. Any
    other value as it is. No device is waited for.
    """
    if name not in _CLASSIFIERS or type(value) is not torch.Tensor or capturing_graph(value):
        return value
    target = args[1] if len(args) > 1 else kwargs.get("target")
    if not isinstance(target, torch.Tensor) or target.is_floating_point():
        return value
    with own_operations():
        ignored = kwargs.get("ignore_index")
        counted = target != (-100 if ignored is None else ignored)
        return value / counted.sum().clamp(min=1)
