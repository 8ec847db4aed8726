"""Log-probabilities of `torch.distributions`, which many losses are made of: their nodes are known.

A loss that is minus one of them, or their mean, is a negative log-likelihood; one that is such a
thing without the minus makes what was observed as unlikely as can be.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import torch
from torch import distributions

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY = "traindbg_density"
_Heard = tuple[type, str, "Callable[[Callable[..., Any]], Callable[..., Any]]"]


def is_density(node: Any) -> bool:
    """Whether a node of a graph is what a `log_prob` returned."""
    found = getattr(node, "metadata", None)
    return isinstance(found, dict) and _KEY in found


def _listening(wants: Callable[[], bool], original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def log_prob(*args: Any, **kwargs: Any) -> Any:
        value = original(*args, **kwargs)
        if wants() and isinstance(value, torch.Tensor):
            found = getattr(value.grad_fn, "metadata", None)
            if isinstance(found, dict):
                found[_KEY] = True
        return value

    return log_prob


def densities(wants: Callable[[], bool]) -> list[_Heard]:
    """The methods that are to be listened to, and how; `wants`: whether somebody asks now."""
    return [
        (kind, "log_prob", functools.partial(_listening, wants))
        for kind in vars(distributions).values()
        if isinstance(kind, type)
        and issubclass(kind, distributions.Distribution)
        and isinstance(vars(kind).get("log_prob"), types.FunctionType)
    ]
