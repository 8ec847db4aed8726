"""What a loss that is written out compares, read from its graph: shapes only.

`((prediction - target) ** 2).mean()` calls no loss function that could be heard. The nodes from the
loss back to the subtraction say which shape the prediction had and which the difference has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

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

Shape = tuple[int, ...]


def _shape_at(node: Any, index: int) -> Shape | None:
    """Of what the node gave, when it was computed, as its output of this index."""
    known = getattr(node, "_input_metadata", None)
    if known is None or index >= len(known):
        return None
    return tuple(int(size) for size in known[index].shape)


def compared_shapes(loss: torch.Tensor) -> tuple[Shape, Shape] | None:
    """Shapes of the prediction and of its difference from the target; None where there is none.

    The first difference, from the loss back, of something that has a gradient and something that
    has none. Keeps nothing of the graph.
    """
    nodes: list[Any] = [loss.grad_fn]
    seen: set[Any] = set()
    while nodes and len(seen) < _MOST_NODES:
        node = nodes.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        name = node.name()
        if name == "SubBackward0":
            inputs = [edge for edge in node.next_functions if edge[0] is not None]
            difference = _shape_at(node, 0)
            if len(inputs) == 1 and difference is not None:
                prediction = _shape_at(*inputs[0])
                if prediction is not None:
                    return prediction, difference
        elif name in _PASSED:
            nodes += [edge[0] for edge in node.next_functions]
    return None
