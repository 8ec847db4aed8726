"""Whether scores were changed by data behind the model's last layer, as by a margin.

    scores = scale * torch.where(true, (angle + margin).cos(), cosine)    # ArcFace
    scores = scale * (cosine - margin * one_hot)                          # CosFace

In training the true class has to win by a margin; that it does not is no wrong label. It shows in
the graph, between the scores and the layer that made them: a choice by a mask, or a sum or product
with something that is not trained. That of a sum may be one number, which cannot be told; the
scores then count as changed, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.base.nodes import is_leaf, next_nodes
from traindbg.hooks.torch.losses.terms import is_passed_on, number_of_factor

if TYPE_CHECKING:
    import torch

_MOST_NODES = 32
_CHOICES = frozenset(
    f"{name}Backward{number}"
    for number in (0, 1)
    for name in ("IndexPut", "MaskedFill", "MaskedScatter", "Scatter", "ScatterAdd", "Where")
)
_SUMS = frozenset({"AddBackward0", "SubBackward0", "RsubBackward0"})
_PRODUCTS = frozenset({"DivBackward0", "MulBackward0"})
_OF_SCORES = frozenset({"ClampBackward0", "ClampBackward1", "LogSoftmaxBackward0", "NegBackward0"})


def are_changed_by_data(scores: torch.Tensor) -> bool:
    """Of scores with a graph; False without one."""
    waiting: list[Any] = [] if scores.grad_fn is None else [scores.grad_fn]
    for _ in range(_MOST_NODES):
        if not waiting:
            return False
        node = waiting.pop()
        name, after = node.name(), next_nodes(node)
        if name in _CHOICES or (name in _SUMS and len(after) < 2):
            return True
        if name in _PRODUCTS and len(after) < 2 and number_of_factor(node) is None:
            return True
        if name in _SUMS | _PRODUCTS | _OF_SCORES or is_passed_on(node):
            waiting += [other for other in after if not is_leaf(other)]
    return False
