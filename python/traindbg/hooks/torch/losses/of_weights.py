"""Whether a loss depends on nothing but the weights: a penalty of them, and a number.

    error = torch.from_numpy(smape(forecast.detach().numpy(), actual))
    loss = error + 1e-5 * sum(p.abs().sum() for p in model.parameters())

`backward()` runs and all parameters get gradients, by the penalty; what was to be learned is a
number. It shows in the graph: from the loss to the parameters there are sums, sizes, powers and
products with numbers alone, and nothing that a model returned. A product with other data than one
number may be what the model computes, so that it ends the search.

Nodes are only looked at, none is kept; what they saved is read where nobody's hooks packed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.base.nodes import saved_by, shape_at
from traindbg.hooks.torch.losses.compared import was_returned

if TYPE_CHECKING:
    from collections.abc import Container

    import torch

_MOST_NODES = 20_000
_LEAF = "AccumulateGrad"
# Of one tensor, or of several that all lie in the graph, or a constant besides.
_PASSED = frozenset(
    {
        "AbsBackward0", "AddBackward0", "AliasBackward0", "CatBackward0", "CloneBackward0",
        "DivBackward0", "ExpandBackward0", "LinalgVectorNormBackward0", "MaxBackward1",
        "MeanBackward0", "MeanBackward1", "MulBackward0", "NegBackward0", "NormBackward0",
        "NormBackward1", "PowBackward0", "ReshapeAliasBackward0", "SelectBackward0",
        "SqrtBackward0", "SqueezeBackward0", "SqueezeBackward1", "StackBackward0",
        "SubBackward0", "SumBackward0", "SumBackward1", "TBackward0", "ToCopyBackward0",
        "UnsafeViewBackward0", "UnsqueezeBackward0", "ViewBackward0",
    }
)  # fmt: skip
_MULTIPLIED = frozenset({"DivBackward0", "MulBackward0"})
_ADDED = frozenset({"AddBackward0", "SubBackward0"})


def _is_by_number(node: Any) -> bool:
    """Of a product or quotient with something that has no gradient: whether that is one number."""
    edges = node.next_functions
    if len(edges) != 2 or all(edge[0] is not None for edge in edges):
        return True
    other = saved_by(node, "other" if edges[1][0] is None else "self")
    return other is not None and other.numel() == 1


def _is_with_number(node: Any) -> bool:
    """The same of a sum: what is added to a whole tensor may be data."""
    edges = [edge for edge in node.next_functions if edge[0] is not None]
    return len(edges) == 2 or shape_at(node, 0) in ((), (1,))


def parameters_of_penalty(
    loss: torch.Tensor, returned: Container[int], watched: Container[int]
) -> int:
    """Of how many of the `watched` parameters (ids) a loss is made alone; 0: of other things, too.

    `returned`: the marks of what models returned in the step.
    """
    nodes: list[Any] = [loss.grad_fn]
    seen: set[Any] = set()
    leaves = 0
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        name = node.name()
        if _LEAF in name:
            if id(getattr(node, "variable", None)) not in watched:
                return 0
            leaves += 1
            continue
        if name not in _PASSED or len(seen) > _MOST_NODES or was_returned(node, returned):
            return 0
        if name in _MULTIPLIED and not _is_by_number(node):
            return 0
        if name in _ADDED and not _is_with_number(node):
            return 0
        nodes += [edge[0] for edge in node.next_functions]
    return leaves
