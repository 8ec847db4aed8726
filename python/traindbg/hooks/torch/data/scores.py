"""Which tensors mix the positions of a sequence: scores of attention, and matrices of a layer."""

from __future__ import annotations

from typing import Any

import torch

from traindbg.hooks.torch.base.nodes import next_nodes
from traindbg.hooks.torch.data.masks import MOST_CELLS
from traindbg.hooks.torch.data.mixers import PRODUCTS

_MOST_NODES = 32  # of a graph that are gone through


def mixing_matrix(function: Any, args: Any, kwargs: Any) -> tuple[torch.Tensor, int] | None:
    """[length, length], by which positions are mixed, as in the spatial gates of a gMLP or a mixer.

    And how many features each position has.

    A layer's weight is such a one where it is given [..., features, positions]: a view that was
    turned, or the channels of a convolution with one tap. None where that is not certain, because
    another dimension is as long.
    """
    both = [
        *args[:2],
        *(kwargs[name] for name in ("input", "other", "weight") if name in kwargs),
    ][:2]
    if len(both) < 2 or not all(isinstance(each, torch.Tensor) for each in both):
        return None
    given, weight = both
    along = -1
    if function in PRODUCTS:
        given, weight, along = weight, given, -2
    elif function is torch.conv1d:
        along = -2
        if weight.dim() != 3 or weight.shape[2] != 1:
            return None
        weight = weight.squeeze(2)
    if given.dim() != 3 or weight.dim() != 2 or weight.shape[0] != weight.shape[1]:
        return None
    length, width = given.shape[along], given.shape[-3 - along]
    is_turned = along == -2 or given.stride(-1) != 1
    if length != len(weight) or width == length or not is_turned or weight.numel() > MOST_CELLS:
        return None
    return weight, width


_OF_WEIGHTS = (
    "AliasBackward", "CloneBackward", "ExpandBackward", "PermuteBackward", "ReshapeAliasBackward",
    "TBackward", "ToCopyBackward", "TransposeBackward", "UnsafeViewBackward", "UnsqueezeBackward",
    "ViewBackward", "WeightNormInterfaceBackward",
)  # fmt: skip


def _is_weight(node: Any) -> bool:
    """A parameter, as it is, or turned, cast or normalised."""
    for _ in range(_MOST_NODES):
        name = str(node.name())
        if "AccumulateGrad" in name:
            return True
        if not name.startswith(_OF_WEIGHTS) or not next_nodes(node):
            return False
        node = next_nodes(node)[0]
    return False


def compares_positions(scores: Any) -> bool:
    """Whether a node computes a number for each pair of positions: scores of attention.

    They come of a product of two tensors of which none is a parameter, or of a sum over what was
    made of each pair. A layer's output is none, though it may be as wide as the sequence is long.
    """
    nodes, seen = [scores], 0
    while nodes and seen < _MOST_NODES:
        node = nodes.pop()
        seen += 1
        name = node.name()
        if name in ("BaddbmmBackward0", "SumBackward1"):
            return True
        if name.startswith("Squeeze"):  # of one score for each pair, by a layer
            return True
        if name in ("MmBackward0", "BmmBackward0"):
            if len(next_nodes(node)) == 2 and not any(map(_is_weight, next_nodes(node))):
                return True
            continue
        if name.startswith(("Addmm", "Linear", "Embedding", "NativeLayerNorm", "Softmax")):
            continue
        nodes += next_nodes(node)
    return False
