"""Nodes of an autograd graph: what leads on from them, and what they tell without being disturbed.

Names, edges and shapes are there for anyone to look at. What a node saved is read where that runs
nobody's hooks (`saved_by`). Nodes must not be kept: they keep what they saved alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.base.device import own_operations

if TYPE_CHECKING:
    import torch

Shape = tuple[int, ...]

_LEAF = "AccumulateGrad"
# They give the elements that they are given, in their order, and in another one.
SAME_VALUE = frozenset(
    {
        "AliasBackward0",
        "CloneBackward0",
        "ReshapeAliasBackward0",
        "SqueezeBackward0",
        "SqueezeBackward1",
        "SqueezeBackward2",
        "ToCopyBackward0",
        "UnsafeViewBackward0",
        "UnsqueezeBackward0",
        "ViewBackward0",
    }
)
SAME_ELEMENTS = SAME_VALUE | {"PermuteBackward0", "TBackward0", "TransposeBackward0"}


def shape_at(node: Any, index: int) -> Shape | None:
    """Of what the node gave, when it was computed, as its output of this index."""
    known = getattr(node, "_input_metadata", None)
    if known is None or index >= len(known):
        return None
    return tuple(int(size) for size in known[index].shape)


def edges_of(node: Any) -> list[Any]:
    """The nodes that a node is made of; None where no gradient goes to."""
    return [other for other, _ in node.next_functions]


def saved_by(node: Any, name: str) -> torch.Tensor | None:
    """What the node keeps under this name.

    None where somebody's hooks packed it (offloading, checkpoints): they may unpack it only once;
    where a backward pass has freed it; or where it was changed since.
    """
    raw = getattr(node, f"_raw_saved_{name}", None)
    if raw is None or getattr(raw, "unpack_hook", raw) is not None:
        return None
    try:
        found: torch.Tensor | None = getattr(node, f"_saved_{name}")
    except RuntimeError:
        return None
    return found


def next_nodes(node: Any) -> list[Any]:
    """Those that a gradient goes to."""
    return [other for other, _ in node.next_functions if other is not None]


def is_leaf(node: Any) -> bool:
    """Whether it is where a gradient is left, at a parameter say."""
    return bool(node.name().endswith(_LEAF))


def number_in(tensor: torch.Tensor) -> float:
    """Of one element. Waits where it is on a device."""
    with own_operations():
        return float(tensor.detach().item())
