"""What a loss that is written out compares, read from its graph.

`((prediction - target) ** 2).mean()` calls no loss function that could be heard. The nodes from the
loss back to the subtraction say which shape the prediction had and which the difference has; and
where the prediction is what a model returned, the two together say what the target was.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.nodes import SAME_VALUE, Shape, saved_by, shape_at
from traindbg.hooks.torch.losses.pairs import pairs_in

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

# What lies between a loss and the difference that it is made of.
_PASSED = frozenset(
    {
        "AbsBackward0",
        "AddBackward0",
        "DivBackward0",
        "MeanBackward0",
        "MeanBackward1",
        "MulBackward0",
        "NegBackward0",
        "PowBackward0",
        "SqrtBackward0",
        "SumBackward0",
        "SumBackward1",
        "ToCopyBackward0",
    }
)
_MOST_NODES = 12
# What only gives a tensor another shape.
_RESHAPED = frozenset(
    {
        "ReshapeAliasBackward0",
        "SelectBackward0",
        "SqueezeBackward0",
        "SqueezeBackward1",
        "SqueezeBackward2",
        "ToCopyBackward0",
        "UnsafeViewBackward0",
        "UnsqueezeBackward0",
        "ViewBackward0",
    }
)
# What sums up values, each times a number.
_SUMMED = _RESHAPED | {
    "DivBackward0",
    "MeanBackward0",
    "MeanBackward1",
    "MulBackward0",
    "NegBackward0",
    "SumBackward0",
    "SumBackward1",
}
_WEIGHED = frozenset({"DivBackward0", "MulBackward0"})
# What may be done to a difference before it becomes a loss: a part of it, in another shape.
_OF_A_DIFFERENCE = (SAME_VALUE - {"ToCopyBackward0"}) | {"SliceBackward0"}
_RETURNED = "traindbg.returned"  # in a node's metadata


class WrittenOut(NamedTuple):
    """A loss as `torch.nn.functional` would be given it."""

    function: str  # "mse_loss", "l1_loss"
    prediction: torch.Tensor
    target: torch.Tensor
    margin: torch.Tensor  # one number: how far the target may be off
    is_mean: torch.Tensor  # one truth value: the loss is their mean, and nothing else
    is_of_columns: torch.Tensor  # another: the loss is the sum of the means of a table's columns
    terms: torch.Tensor  # one number: of how many values the loss is the sum; 0 where it is none


class _Difference(NamedTuple):
    user: Any  # the node that the difference goes into
    prediction: tuple[Any, int]  # the edge to what made the prediction
    shape: Shape  # of the difference
    is_reversed: bool  # target - prediction
    cuts: tuple[Any, ...] = ()  # nodes that took a part of it or shaped it, the last one first


def mark_returned(tensor: torch.Tensor, number: int) -> None:
    """Makes `tensor`, returned by a model, known again in the graphs of losses."""
    if tensor.grad_fn is not None:
        tensor.grad_fn.metadata[_RETURNED] = number


def was_returned(node: Any, marks: Container[int]) -> bool:
    """Whether a node computed what a model returned: one of these numbers of `mark_returned`."""
    return node.metadata.get(_RETURNED) in marks


def _difference(loss: torch.Tensor) -> _Difference | None:
    """The first one, from the loss back, of what has a gradient and what has none."""
    nodes: list[tuple[Any, Any, tuple[Any, ...]]] = [(loss.grad_fn, None, ())]
    seen: set[Any] = set()
    while nodes and len(seen) < _MOST_NODES:
        node, user, cuts = nodes.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        name = node.name()
        if name == "SubBackward0":
            inputs = [edge for edge in node.next_functions if edge[0] is not None]
            shape = shape_at(node, 0)
            if len(inputs) == 1 and shape is not None:
                is_reversed = node.next_functions[0][0] is None
                return _Difference(user, inputs[0], shape, is_reversed, cuts)
        elif name in _OF_A_DIFFERENCE and user is not None:
            nodes.append((node.next_functions[0][0], user, (*cuts, node)))
        elif name in _PASSED:
            nodes += [(edge[0], node, ()) for edge in node.next_functions]
    return None


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number


def _cut(whole: torch.Tensor, cuts: tuple[Any, ...]) -> torch.Tensor:
    """What was left of it, in its shape."""
    for node in reversed(cuts):
        if node.name() != "SliceBackward0":
            whole = whole.reshape(shape_at(node, 0) or whole.shape)
            continue
        index = slice(_signed(node._saved_start), _signed(node._saved_end), node._saved_step)
        whole = whole[(slice(None),) * (_signed(node._saved_dim) % whole.dim()) + (index,)]
    return whole


def compared_shapes(loss: torch.Tensor) -> tuple[Shape, Shape] | None:
    """Shapes of the prediction and of its difference from the target; None where there is none.

    Or of what it makes with other data, where each is taken with those of all samples.

    Keeps nothing of the graph.
    """
    pairs = pairs_in(loss)
    if pairs.result:
        return pairs.prediction, pairs.result
    found = None if pairs.are_meant else _difference(loss)
    prediction = None if found is None else shape_at(*found.prediction)
    if found is None or prediction is None:
        return None
    # Which values of the target each row goes with, only pairs can tell.
    if len(found.shape) > max(2, len(prediction)):
        return None
    if len(found.shape) > 2 and found.shape[0] == found.shape[1] and prediction != found.shape:
        return None
    return prediction, found.shape


def _function_of(user: Any) -> str:
    """Which loss a difference is made into; empty: none that is known."""
    name = "" if user is None else user.name()
    if name == "PowBackward0" and user._saved_exponent == 2:
        return "mse_loss"
    if name == "AbsBackward0":
        return "l1_loss"
    if name == "MulBackward0" and len({edge[0] for edge in user.next_functions}) == 1:
        return "mse_loss"  # times itself
    return ""


def _difference_in(user: Any) -> torch.Tensor | None:
    """What went into the node, where it is a plain tensor that is kept."""
    found = saved_by(user, "self")
    if found is None or type(found) is not torch.Tensor or found.layout != torch.strided:
        return None
    return found


def _returned(node: Any) -> int | None:
    """The number of what a model returned, where that is the prediction in another shape."""
    for _ in range(_MOST_NODES):
        if node is None:
            return None
        number = node.metadata.get(_RETURNED)
        if number is not None:
            return int(number)
        if node.name() not in _RESHAPED:
            return None
        node = node.next_functions[0][0]
    return None


def _is_by_mask(node: Any) -> bool:
    """Whether a product, or a quotient, is one with a number, or with one number here and 0 there.

    With other data, such as vectors without gradients, it is a comparison.
    """
    other = saved_by(node, "other")
    if other is None:
        other = saved_by(node, "self")
    if other is None or other.numel() == 1 or not other.is_floating_point():
        return other is not None
    if not may_read(other) or capturing_graph(other):
        return False
    with own_operations():
        return bool(((other == 0) | (other == other.max())).all())


def summed_output(loss: torch.Tensor, returned: Mapping[int, torch.Tensor]) -> int | None:
    """The number of what a model returned, if the loss is but the sum of its values, or their mean.

    Or times a number or a mask. Then it is a loss itself, one for each of its values.
    """
    node = loss.grad_fn
    for _ in range(_MOST_NODES):
        if node is None:
            return None
        number = node.metadata.get(_RETURNED)
        if number in returned and returned[number].numel() > 1:
            return int(number)
        if node.name() not in _SUMMED or (node.name() in _WEIGHED and not _is_by_mask(node)):
            return None
        inputs = [edge[0] for edge in node.next_functions if edge[0] is not None]
        node = inputs[0] if len(inputs) == 1 else None
    return None


def written_out(loss: torch.Tensor, returned: Mapping[int, torch.Tensor]) -> WrittenOut | None:
    """The loss as a function that compares what a model returned with a target; None: it is none.

    `returned`: by the numbers of `mark_returned`, without gradients. The target is computed anew,
    so whole numbers are whole but for rounding, which is taken off.
    """
    found = _difference(loss) if loss.numel() == 1 and returned else None
    function = "" if found is None else _function_of(found.user)
    number = None if found is None else _returned(found.prediction[0])
    prediction = None if number is None else returned.get(number)
    if found is None or not function or prediction is None or type(loss) is not torch.Tensor:
        return None
    difference = _difference_in(found.user)
    if difference is None:
        return None
    if math.prod(found.shape) != prediction.numel() or difference.device != prediction.device:
        return None
    if capturing_graph(difference) or difference.numel() == 0:
        return None
    with own_operations():
        difference = difference.detach()
        prediction = _cut(prediction.reshape(found.shape), found.cuts)
        if prediction.shape != difference.shape:
            return None
        target = prediction + difference if found.is_reversed else prediction - difference
        # A subtraction and its reverse are off by the last bits of the larger operand.
        whole = target.round()
        last_bits = 4 * torch.finfo(target.dtype).eps * (prediction.abs() + difference.abs())
        near = (target - whole).abs() <= last_bits
        target = torch.where(near, whole, target)
        mean = difference.square().mean() if function == "mse_loss" else difference.abs().mean()
        is_mean = (mean - loss.detach()).abs() <= 1e-4 * mean.abs()
        columns = difference.shape[1] if difference.dim() == 2 else 1
        is_of_columns = (columns * mean - loss.detach()).abs() <= 1e-4 * columns * mean.abs()
        total = mean * difference.numel()
        is_sum = ((total - loss.detach()).abs() <= 1e-4 * total.abs()) & (total > 0)
        terms = is_sum.to(torch.float32) * difference.numel()
        margin = last_bits.amax()
    return WrittenOut(function, prediction, target, margin, is_mean, is_of_columns, terms)
