"""Whether a loss is an error that is written out and counts some samples more than others.

    ((prediction - target).abs() / target.abs()).mean()

It is no loss of `torch.nn.functional`, and its value depends on the weights of the batch. But it
falls when the model learns, as long as no weight is below 0: it is 0 where the prediction is the
target, and never less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.nodes import SAME_VALUE, saved_by
from traindbg.hooks.torch.losses.compared import was_returned

if TYPE_CHECKING:
    from collections.abc import Container

_MOST_NODES = 12
_REDUCED = frozenset({"MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1"})
_WEIGHED = frozenset({"DivBackward0", "MulBackward0"})


def _input_of(node: Any) -> Any:
    """The only node that a gradient goes to, once or twice. None: there are others, or none."""
    inputs = {edge[0] for edge in node.next_functions if edge[0] is not None}
    return inputs.pop() if len(inputs) == 1 else None


def _is_error(node: Any) -> bool:
    """Whether what it computes is never below 0, and 0 only where it is given 0."""
    name = node.name()
    is_itself = name == "MulBackward0" and len(node.next_functions) == 2
    is_itself = is_itself and node.next_functions[0][0] is node.next_functions[1][0]
    is_square = name == "PowBackward0" and node._saved_exponent == 2
    return bool(name == "AbsBackward0" or is_itself or is_square)


def _weight_of(node: Any) -> torch.Tensor | None:
    """What a value is multiplied with or divided by, in a product or quotient with plain data."""
    other = saved_by(node, "other")
    if other is None and node.name() == "MulBackward0":
        other = saved_by(node, "self")
    is_plain = other is not None and other.layout is torch.strided and not other.requires_grad
    return other if is_plain else None


def _is_difference(node: Any, marks: Container[int]) -> bool:
    """Of what a model returned, in another shape perhaps, and of what has no gradient."""
    if node.name() != "SubBackward0" or None not in [edge[0] for edge in node.next_functions]:
        return False
    node = _input_of(node)
    for _ in range(_MOST_NODES):
        if node is None:
            return False
        if was_returned(node, marks):
            return True
        if node.name() not in SAME_VALUE:
            return False
        node = _input_of(node)
    return False


def _differ(weights: torch.Tensor) -> torch.Tensor:
    """Whether they are not all the same; of any type."""
    each = weights.reshape(-1)
    return (each != each[0]).any()


def weighed_error(loss: torch.Tensor, marks: Container[int]) -> torch.Tensor | None:
    """One truth value: none of its weights is below 0, and they differ. None: it is no such error.

    `marks`: the numbers of `mark_returned`. Keeps nothing of the graph; waits for no device.
    """
    node = loss.grad_fn
    weights: list[torch.Tensor] = []  # of errors
    differ: list[torch.Tensor] = []  # all weights for single samples; of differences, too
    is_error = False
    for _ in range(_MOST_NODES):
        if node is None:
            return None
        if is_error and _is_difference(node, marks):
            break
        name = node.name()
        if not is_error and _is_error(node):
            is_error = True
        elif name in _WEIGHED:
            weight = _weight_of(node)
            if weight is None or weight.is_complex() or capturing_graph(weight):
                return None
            if not is_error:
                weights.append(weight)
            if weight.numel() > 1:
                differ.append(weight)
        elif name not in SAME_VALUE and (is_error or name not in _REDUCED):
            return None
        node = _input_of(node)
    else:
        return None
    if not differ:
        return None
    with own_operations():
        told = torch.stack([_differ(weight.detach()) for weight in differ])
        are_told = told.any()
        for weight in weights:
            are_told = are_told & (weight.detach() >= 0).all().to(are_told.device)
    return are_told
