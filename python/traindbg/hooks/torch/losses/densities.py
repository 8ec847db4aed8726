"""Log-probabilities of `torch.distributions`, which many losses are made of: their nodes are known.

A loss that is minus one of them, or their mean, is a negative log-likelihood; one that is such a
thing without the minus makes what was observed as unlikely as can be. Of a value that has a graph
of its own, such as a sample drawn by reparametrisation, nothing is said: it was not observed.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

import torch
from torch import distributions

from traindbg.hooks.torch.base.guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

_KEY = "traindbg_density"
_is_compiling = torch.compiler.is_compiling
_modes = getattr(torch._C, "_len_torch_function_stack", None)


def is_density(node: Any) -> bool:
    """Whether a node of a graph is what a `log_prob` returned of a value that was observed."""
    found = getattr(node, "metadata", None)
    return isinstance(found, dict) and _KEY in found


def _mark(value: Any, observed: Any) -> None:
    # Of other classes and while modes are on, to look at a tensor is to run code of the user's.
    if type(value) is not torch.Tensor or (_modes is not None and _modes() > 0):
        return
    if type(observed) is torch.Tensor and observed.requires_grad:
        return
    found = getattr(value.grad_fn, "metadata", None)
    if isinstance(found, dict):
        found[_KEY] = True


def listening(wants: Callable[[], bool], original: Callable[..., Any]) -> Callable[..., Any]:
    """Of a `log_prob`; `wants`: whether somebody asks now."""

    @functools.wraps(original)
    def log_prob(*args: Any, **kwargs: Any) -> Any:
        value = original(*args, **kwargs)
        if not _is_compiling() and wants():
            observed = args[1] if len(args) > 1 else kwargs.get("value")
            guarded("densities", _mark, value, observed)
        return value

    return log_prob


def kinds() -> list[type]:
    """The distributions of PyTorch that have a `log_prob` of their own."""
    return [
        kind
        for kind in vars(distributions).values()
        if isinstance(kind, type)
        and issubclass(kind, distributions.Distribution)
        and isinstance(vars(kind).get("log_prob"), types.FunctionType)
    ]
