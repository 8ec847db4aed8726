"""Whether a loss is made of cosines between outputs alone, each with a gradient on both sides.

Such a loss asks that samples point the same way, whatever their lengths, and lets both of what it
compares move: it is least where all of them point one way. Where one side is detached (SimSiam,
BYOL), or cosines of other pairs go into a softmax (contrastive losses), it is none of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_MOST_NODES = 64
_MOST_STEPS = 16
# What gives a tensor another shape, or a copy of a part of it.
_RESHAPED = frozenset(
    {
        "CloneBackward0",
        "ExpandBackward0",
        "IndexBackward0",
        "PermuteBackward0",
        "ReshapeAliasBackward0",
        "SelectBackward0",
        "SliceBackward0",
        "SqueezeBackward0",
        "SqueezeBackward1",
        "SqueezeBackward2",
        "TBackward0",
        "ToCopyBackward0",
        "TransposeBackward0",
        "UnbindBackward0",
        "UnsafeViewBackward0",
        "UnsqueezeBackward0",
        "ViewBackward0",
    }
)
# What lies between a loss and its cosines: sums, means, signs and factors.
_LINEAR = frozenset(
    {
        "AddBackward0",
        "MeanBackward0",
        "MeanBackward1",
        "NegBackward0",
        "RsubBackward1",
        "SubBackward0",
        "SumBackward0",
        "SumBackward1",
        "ToCopyBackward0",
    }
)
_NORMS = frozenset({"LinalgVectorNormBackward0", "NormBackward1", "NormBackward2"})
_AROUND_NORMS = _RESHAPED | {"AddBackward0", "ClampMinBackward0", "MaximumBackward0"}


def _inputs(node: Any) -> list[Any]:
    return [other for other, _ in node.next_functions]


def _is_behind(node: Any, passed: frozenset[str], names: frozenset[str]) -> bool:
    for _ in range(_MOST_STEPS):
        if node is None:
            return False
        if node.name() in names:
            return True
        if node.name() not in passed:
            return False
        node = next((other for other in _inputs(node) if other is not None), None)
    return False


def _is_unit_vector(node: Any) -> bool:
    """Something divided by its norm, with a gradient."""
    for _ in range(_MOST_STEPS):
        if node is None or node.name() not in _RESHAPED:
            break
        node = _inputs(node)[0]
    if node is None or node.name() != "DivBackward0":
        return False
    divided, by = _inputs(node)
    return divided is not None and _is_behind(by, _AROUND_NORMS, _NORMS)


def compares_directions(loss: torch.Tensor) -> bool:
    """Reads the graph of `loss`, and keeps nothing of it."""
    nodes: list[Any] = [loss.grad_fn]
    seen: set[Any] = set()
    found = False
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if len(seen) > _MOST_NODES:
            return False
        name, inputs = node.name(), _inputs(node)
        if name == "MulBackward0" and len(inputs) == 2 and all(map(_is_unit_vector, inputs)):
            found = True
        elif name in _LINEAR:
            nodes += inputs
        elif name in ("DivBackward0", "MulBackward0") and inputs[-1] is None:
            nodes.append(inputs[0])  # by a number
        else:
            return False
    return found
