"""Losses that are added to what backward is called on, and that have no gradient.

    spectral = l1_loss(torch.from_numpy(spectrum(output.detach().numpy())), target)
    loss = spectral + 0.2 * loudness     # the value is right, and teaches nothing
    loss.backward()

Where all other terms of the sum are values of loss functions, what is left of it can be told: it
is looked for among the values without a gradient that loss functions gave in the same step. It has
to be the same multiple of one of them at each look, while that value changes.

Nothing is told of a model some of whose parameters are frozen, which may be why a loss has no
gradient, of what was computed without gradients on purpose, and of losses on devices, for which
each look would wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.nodes import SAME_VALUE, number_in
from traindbg.hooks.torch.losses.root import value_marked
from traindbg.hooks.torch.losses.terms import number_of_factor

if TYPE_CHECKING:
    from collections.abc import Container

    from traindbg.hooks.torch.base.teller import Teller
    from traindbg.hooks.torch.base.watched import WatchedModels

_MOST_LOSSES = 8  # of a step
_MOST_NODES = 64  # of the sum
_LEAST_SHARE = 1e-3  # of the loss, below which rounding hides what is left
_ALIKE = 1e-3  # multiples that are the same but for rounding
_CHANGED = 1e-4  # a value, since it was seen first
_REDUCED = frozenset({"MeanBackward0", "SumBackward0"})  # of a stack of terms


class _Known(NamedTuple):
    """What the values of loss functions with a gradient give together."""

    value: float
    is_all: bool  # nothing without a gradient is added


def _known_part(root: Any) -> _Known | None:
    """Of a sum of values of loss functions, each times a number. None: it is of other things."""
    total, is_all = 0.0, True
    waiting: list[tuple[Any, float]] = [(root, 1.0)]
    for _ in range(_MOST_NODES):
        if not waiting:
            return _Known(total, is_all)
        node, times = waiting.pop()
        value = value_marked(node)
        if value is not None:
            total += times * value
            continue
        name, after = node.name(), [edge[0] for edge in node.next_functions]
        if name in ("AddBackward0", "SubBackward0"):
            alpha = getattr(node, "_saved_alpha", None)  # a number; nobody's hook is in the way
            if not isinstance(alpha, (int, float)) or len(after) > 2:
                return None
            factors = [times, times * (-alpha if name == "SubBackward0" else alpha)]
        elif name == "StackBackward0":
            factors = [times] * len(after)
        elif name in _REDUCED and after[0] is not None and after[0].name() == "StackBackward0":
            terms = len(after[0].next_functions)
            factors = [times / terms if name == "MeanBackward0" else times]
        elif name in ("MulBackward0", "DivBackward0"):
            number = number_of_factor(node)
            if number is None or number == 0 or sum(other is not None for other in after) != 1:
                return None
            factor = times * number if name == "MulBackward0" else times / number
            waiting += [(other, factor) for other in after if other is not None]
            continue
        elif name == "NegBackward0":
            factors = [-times]
        elif name in SAME_VALUE:
            factors = [times]
        else:
            return None
        is_all = is_all and None not in after
        waiting += [(x, factor) for x, factor in zip(after, factors, strict=False) if x is not None]
    return None


class LossesDetached:
    """One per recording, one thread. Keeps numbers alone."""

    def __init__(self, teller: Teller, models: WatchedModels) -> None:
        self._teller = teller
        self._models = models
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        # Of each loss without a gradient: as how many times it the rest was seen first, and its
        # value then.
        self._firsts: dict[str, tuple[float, float]] = {}
        self.clear()

    def clear(self) -> None:
        """A step begins."""
        self._values: dict[str, float] = {}
        self._is_told = False

    def loss_computed(
        self,
        name: str,
        value: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        rows: Container[int],
    ) -> None:
        """By a loss function, in training. `rows`: of what models returned in this step."""
        if type(value) is not torch.Tensor or value.requires_grad or value.numel() != 1:
            return
        given = args[0] if args else kwargs.get("input")
        is_of_rows = isinstance(given, torch.Tensor) and given.dim() > 0 and given.shape[0] in rows
        if not is_of_rows or not torch.is_grad_enabled() or not may_read(value):
            return
        if len(self._values) < _MOST_LOSSES:
            number = sum(known.partition("#")[0] == name for known in self._values) + 1
            self._values[name if number == 1 else f"{name}#{number}"] = number_in(value)

    def backward_begins(self, root: Any) -> None:
        """Of the first of a step's passes that there is something to tell of."""
        values, self._values = self._values, {}
        if not values or self._is_told or type(root) is not torch.Tensor:
            return
        if root.grad_fn is None or root.numel() != 1 or not may_read(root):
            return
        models = self._models.models()
        if not all(p.requires_grad for model, _ in models for p in model.parameters()):
            return
        known = _known_part(root.grad_fn)
        self._is_told = True
        if known is None or known.is_all:
            self._firsts = {}
            self._teller.fact("detached_term", 0)
            return
        loss = number_in(root)
        rest = loss - known.value
        found = ""
        for name, value in values.items():
            if value > 0 and rest > _LEAST_SHARE * abs(loss) and self._is_part(name, value, rest):
                found = found or name
        self._teller.fact("detached_term", rest / abs(loss) if found else 0, found)

    def _is_part(self, name: str, value: float, rest: float) -> bool:
        """Whether the rest is as many times the value as it was, and the value is another one."""
        times, first = self._firsts.get(name, (0.0, value))
        if abs(rest / value - times) > _ALIKE * times:
            self._firsts[name] = rest / value, value
            return False
        return abs(value - first) > _CHANGED * first
