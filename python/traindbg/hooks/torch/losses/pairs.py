"""Whether a loss that is written out takes each prediction with the data of all samples.

A prediction (n, 1) and a target (n,) make (n, n) wherever they are added, subtracted, multiplied or
divided, and a mean of it is one number again. In the graph such an operation has one input that has
a gradient, of n elements, and n * n where it ends; between it and the reduction of all of that are
operations for each element alone. So do a prediction (n, k) and a target (n, 1, 1), which make
(n, n, k), and one (n, 1, height, width) and a target (n, height, width). Of a product of those
nothing is said: there may be as many steps, or templates, as there are samples.

Pairs may be meant: of the difference of two predictions, both of which have a gradient; made by
a dimension that was put in for them (`x[:, None]`) or turned (`x.t()`); or with a matrix. What is
reduced row by row first is meant, too: the risks of a Cox model, say.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.nodes import Shape, saved_by, shape_at

if TYPE_CHECKING:
    import torch

_MOST_NODES = 64
_FEWEST = 4  # samples: of fewer, n may be the number of anything
_ADDED = frozenset({"AddBackward0", "SubBackward0"})
_MULTIPLIED = frozenset({"DivBackward0", "MulBackward0"})
_REDUCED = frozenset({"MeanBackward0", "SumBackward0"})  # all of it to one number
# Of each element alone, such that its mean does not only depend on the mean of what goes in.
_BENT = frozenset(
    {
        "AbsBackward0",
        "ClampBackward0",
        "ClampBackward1",
        "ClampMaxBackward0",
        "ClampMinBackward0",
        "CoshBackward0",
        "ErfBackward0",
        "ExpBackward0",
        "Expm1Backward0",
        "HuberLossBackward0",
        "LeakyReluBackward0",
        "Log1PBackward0",
        "LogAddExpBackward0",
        "LogBackward0",
        "LogSigmoidBackward0",
        "MaximumBackward0",
        "MinimumBackward0",
        "MseLossBackward0",
        "PowBackward0",
        "ReciprocalBackward0",
        "ReluBackward0",
        "SigmoidBackward0",
        "SmoothL1LossBackward0",
        "SoftplusBackward0",
        "SqrtBackward0",
        "TanhBackward0",
        "WhereBackward0",
    }
)
_LINEAR = _ADDED | {"NegBackward0", "RsubBackward1", "ToCopyBackward0"}
_OF_ALL_SAMPLES = frozenset({"LogSoftmaxBackward0", "SoftmaxBackward0"})
_REDUCED_ROWS = frozenset({"MeanBackward1", "SumBackward1"})  # of (n, n, k) to (n, n), say
_MOST_PLACES = 16  # along each dimension
_PARAMETER = "torch::autograd::AccumulateGrad"
_GIVES_A_DIMENSION = frozenset({"ReshapeAliasBackward0", "UnsqueezeBackward0", "ViewBackward0"})


class Pairs(NamedTuple):
    """What was found of them."""

    prediction: Shape = ()
    result: Shape = ()  # empty: there are none, or they are meant
    are_meant: bool = False


def _is_of_samples(shape: Shape, result: Shape) -> bool:
    """Whether it has one row for each sample, where `result` has one for each pair."""
    number = result[0]
    if len(result) == 2:
        return shape in ((number,), (number, 1))
    if shape == (number, 1, *result[2:]):
        return True
    return len(result) == 3 and result[2] != number and shape == (number, result[2])


def _was_put_in(edge: tuple[Any, int]) -> bool:
    """Whether (n, 1) was made of (n,), so that it goes with another (n,) in pairs."""
    node, index = edge
    if node.name() not in _GIVES_A_DIMENSION:
        return False
    before = shape_at(*node.next_functions[0]) if node.next_functions[0][0] is not None else None
    return before is not None and len(before) < len(shape_at(node, index) or ())


def _alone_behind(edge: tuple[Any, int], shape: Shape) -> frozenset[Any]:
    """The nodes that a value of samples is made by, each element for itself."""
    waiting, found = [edge], set[Any]()
    while waiting and len(found) < _MOST_NODES:
        node, index = waiting.pop()
        if node is None or node in found or shape_at(node, index) != shape:
            continue
        found.add(node)
        if node.name() in _BENT or node.name() in _LINEAR or node.name() in _MULTIPLIED:
            waiting += node.next_functions
    return frozenset(found)


def _goes_with_a_row(node: Any, position: int, prediction: Shape, result: Shape) -> bool:
    """Of a product: whether the data are n values in the other form than the prediction."""
    data = saved_by(node, "other" if position == 0 else "self")
    if data is None:
        return False
    number = prediction[0]
    if len(prediction) > 2:
        return False
    if len(result) == 3:
        return tuple(data.shape) in ((number, 1, result[2]), (number, 1, 1))
    return tuple(data.shape) == ((number, 1) if len(prediction) == 1 else (number,))


def _is_sum_of_two(values: torch.Tensor | None, result: Shape) -> bool:
    """Whether each of (n, n, k) values is one of its row and k plus one of its column and k.

    The data may as well be (n, n, k) themselves: as many series, say, as each has steps. Of more
    dimensions some elements are looked at.
    """
    if values is None or tuple(values.shape) != result or not may_read(values):
        return False
    with own_operations():
        values = values.detach()
        if len(result) > 3:
            # From all over it: a corner may be empty.
            every = [slice(None, None, 1 + (size - 1) // _MOST_PLACES) for size in result]
            values = values[tuple(every)].flatten(2)
        rows = values - values[:1]
        error = (rows - rows[:, :1]).abs().amax()
        return bool(error <= 1e-4 * values.abs().amax())


def _is_square(shape: Shape | None) -> bool:
    return shape is not None and 2 <= len(shape) <= 5 and shape[0] == shape[1] >= _FEWEST


def pairs_in(loss: torch.Tensor) -> Pairs:
    """Looks from the loss back. Keeps nothing of the graph."""
    # A node, which of its outputs, and of what is between it and the loss: whether it is bent, the
    # values that a bent operation was given last, where they are kept, and the nodes of predictions
    # that it is multiplied by once more.
    nodes: list[tuple[Any, int, bool, torch.Tensor | None, frozenset[Any] | None]]
    nodes = [(loss.grad_fn, 0, False, None, None)]
    seen: set[tuple[Any, bool, bool]] = set()
    found = Pairs()
    while nodes and len(seen) < _MOST_NODES:
        node, index, is_bent, values, beside = nodes.pop(0)
        key = node, is_bent, beside is None
        if node is None or key in seen:
            continue
        seen.add(key)
        name, shape = node.name(), shape_at(node, index)
        if shape in ((), (1,)):
            if name in _REDUCED:
                is_bent = False
            elif name not in _LINEAR and name not in _MULTIPLIED and name not in _BENT:
                continue
        elif name == "StackBackward0" and shape is not None and len(shape) == 1:
            pass  # of several losses
        elif not _is_square(shape):
            continue
        elif name in _ADDED or name in _MULTIPLIED:
            assert shape is not None
            inputs = [
                (position, edge, given)
                for position, edge in enumerate(node.next_functions)
                if edge[0] is not None and (given := shape_at(*edge)) is not None
            ]
            flat = [each for each in inputs if _is_of_samples(each[2], shape)]
            # Nobody turns predictions into a row by mistake.
            is_turned = any(given == (1, shape[0]) for _, _, given in inputs)
            if len(inputs) == 2 and is_turned and name in _ADDED:
                return Pairs(are_meant=True)
            if len(inputs) == 2 and flat:  # a sum of both may be the model's own, by mistake
                if name == "SubBackward0" and len(flat) == 2:
                    return Pairs(are_meant=True)
                made = [edge for _, edge, given in inputs if given == shape and len(shape) == 2]
                if name in _MULTIPLIED and len(flat) == len(made) == 1:
                    # What the predictions are multiplied by may have been made of them and of the
                    # data: `target * (1 - p) ** gamma * p.log()`.
                    alone = _alone_behind(flat[0][1], flat[0][2])
                    if any(each.name() in _OF_ALL_SAMPLES for each in alone):
                        return Pairs(are_meant=True)  # particles with weights, of a mixture say
                    again = alone if beside is None else alone & beside
                    nodes.append((*made[0], True, None, again))
                continue
            if flat:
                position, edge, given = flat[0]
                if (len(shape) == 2 or len(given) > 2) and _was_put_in(edge):
                    return Pairs(are_meant=True)
                if len(shape) > 2 and edge[0].name() == _PARAMETER:
                    continue  # as many centres, say, as there are samples
                if len(shape) > 2 and name in _ADDED and not _is_sum_of_two(values, shape):
                    continue
                # A weight that is another output of the model goes with pairs that are meant, and
                # a target that is subtracted may have been turned to go with all of them.
                if beside is not None and (
                    name in _ADDED or not _alone_behind(edge, given) & beside
                ):
                    continue
                if is_bent if name in _ADDED else _goes_with_a_row(node, position, given, shape):
                    found = Pairs(given, shape)
                continue
            if name in _MULTIPLIED and len(inputs) == 2:
                is_bent, values = True, saved_by(node, "self")
        elif name in _BENT:
            is_bent, values = True, saved_by(node, "self")
        elif name in _REDUCED_ROWS:
            before = shape_at(*node.next_functions[0])
            if shape is None or before is None or before[:2] != shape[:2]:
                continue
        elif name not in _LINEAR:
            continue
        nodes += [(*edge, is_bent, values, beside) for edge in node.next_functions]
    return found
