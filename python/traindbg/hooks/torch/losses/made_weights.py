"""The parameter behind a layer's weight that is computed from it: normalised, masked, orthogonal.

`torch.nn.utils.parametrizations` and `parametrize` keep what a weight is made of in a module of its
own, `weight_norm` of before and `prune` as `weight_v` and `weight_orig`. The layer multiplies by
such a weight as by any other: what it is made of has nothing to do with the data. A weight with a
mask is left out: of sparse factors is often made what one layer would be too large for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch.base.nodes import is_leaf, next_nodes, saved_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from traindbg.hooks.torch.base.parameters import Owner

_MOST_NODES = 32
_MODULE = ".parametrizations.weight"
_NAMES = ("weight_orig", "weight_v")


class MadeWeight(NamedTuple):
    """Of one layer."""

    parameter: torch.Tensor  # the one with as many elements
    nodes: list[Any]  # that compute the weight. Not to be kept.


def weight_made(node: Any, size: int, owners: Mapping[int, Owner]) -> MadeWeight | None:
    """What a weight of `size` elements, computed by `node`, is made of; None: of other things.

    `owners`: by the ids of parameters.
    """
    waiting, seen = [node], set[Any]()
    leaves: dict[int, torch.Tensor] = {}
    while waiting:
        here = waiting.pop()
        if here is None or here in seen:
            continue
        if len(seen) >= _MOST_NODES:
            return None
        seen.add(here)
        if is_leaf(here):
            leaves[id(here.variable)] = here.variable
        waiting += next_nodes(here)
    held = [owners.get(key) for key in leaves]
    # A weight that another layer's parameters go into may as well be made of the data.
    if len({None if owner is None else owner.module for owner in held}) != 1:
        return None
    for leaf, owner in zip(leaves.values(), held, strict=True):
        if owner is None or leaf.numel() != size:
            continue
        if _is_masked(node, leaf):
            return None
        if owner.module.endswith(_MODULE) or owner.path.rpartition(".")[2] in _NAMES:
            return MadeWeight(leaf, [n for n in seen if not is_leaf(n)])
    return None


def _is_masked(node: Any, leaf: torch.Tensor) -> bool:
    """Whether what a node computes is a parameter times a mask, as `prune` makes it."""
    while not is_leaf(node):
        after = next_nodes(node)
        if len(after) != 1:
            return False
        if node.name() == "MulBackward0":
            # Times one number for all it would be what it was.
            mask = saved_by(node, "self")
            mask = saved_by(node, "other") if mask is None else mask
            return mask is not None and mask.numel() == leaf.numel()
        node = after[0]
    return False


def by_layer(owner: Owner) -> Owner:
    """The same, where its module is the layer whose weight is computed from it."""
    return owner._replace(module=owner.module.removesuffix(_MODULE))
