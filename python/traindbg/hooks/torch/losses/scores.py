"""Whether a loss that is written out takes raw scores for what a softmax or sigmoid gave.

A loss may be a weighted sum of raw scores, and of nothing else:
`-(labels * logits).sum(1).mean()` and `-logits.gather(1, labels).mean()` are cross-entropies whose
logarithm of the softmax was forgotten: without its sum over all classes nothing bounds them. In the
graph each term of such a loss is linear, back to what a matrix product or a convolution gave; and
on the way the scores are multiplied with rows that are distributions, or one of each row is picked.

Or it takes the logarithm of raw scores that are cut off at 0 and 1, as one does with probabilities:
`-torch.log(torch.clamp(scores, 1e-7, 1 - 1e-7))[rows, labels].mean()`. Scores outside, which
probabilities never are, get no gradient. Labels pick one score of each row, or are multiplied with
the logarithms; without them it may be the barrier of an interior point method. So may it where
another term of the loss fits the same scores.
"""

from __future__ import annotations

from typing import Any

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.nodes import Shape, is_leaf, next_nodes, saved_by, shape_at

_MOST_NODES = 48
_MOST_ELEMENTS = 1 << 20  # of labels
_FEWEST_SCORES = 3  # in a row: two are often something else, such as two critics
_RESHAPED = frozenset(
    {
        "CloneBackward0",
        "PermuteBackward0",
        "ReshapeAliasBackward0",
        "SqueezeBackward0",
        "SqueezeBackward1",
        "SqueezeBackward2",
        "TBackward0",
        "ToCopyBackward0",
        "TransposeBackward0",
        "UnsafeViewBackward0",
        "UnsqueezeBackward0",
        "ViewBackward0",
    }
)
_LINEAR = _RESHAPED | {
    "AddBackward0",
    "MeanBackward0",
    "MeanBackward1",
    "NegBackward0",
    "RsubBackward1",
    "SelectBackward0",
    "SliceBackward0",
    "SubBackward0",
    "SumBackward0",
    "SumBackward1",
}
_GIVES_SCORES = frozenset(
    {
        "AddmmBackward0",
        "BaddbmmBackward0",
        "BmmBackward0",
        "ConvolutionBackward0",
        "LinearBackward0",
        "MkldnnLinearBackward0",
        "MmBackward0",
    }
)
_FACTORS = {  # of its inputs; the others are biases
    "AddmmBackward0": (1, 2),
    "BaddbmmBackward0": (1, 2),
}
_FIRST_TWO = (0, 1)
_OF_SIZES = frozenset(
    {"AbsBackward0", "LinalgVectorNormBackward0", "NormBackward1", "PowBackward0"}
)
_LEAF = "torch::autograd::AccumulateGrad"
_LOGARITHMS = frozenset({"LogBackward0", "Log2Backward0", "Log10Backward0"})
_PICKS = frozenset({"GatherBackward0", "IndexBackward0", "SelectBackward0", "SliceBackward0"})
_MOST_ELSEWHERE = 256  # nodes that are looked at for another way to the scores
_MOST_BEHIND = 16  # nodes between a logarithm and where its values are cut off
_EDGE = 1e-2  # how far from 0 and 1 probabilities are cut off
_LEAST_OUTSIDE = 0.1  # of the scores: at the start about half of them are below zero
_BEYOND_ROUNDING = 1e-3  # from 0 and 1


def _is_row_of_scores(shape: Shape | None) -> bool:
    return shape is not None and len(shape) >= 2 and shape[-1] >= _FEWEST_SCORES


def _are_raw(edge: tuple[Any, int]) -> bool:
    return _maker_of_raw(edge) is not None


def _maker_of_raw(edge: tuple[Any, int]) -> Any:
    """The matrix product or convolution that gave this, with a bias or divided by a number.

    None: it is made by something else.
    """
    node = edge[0]
    for _ in range(_MOST_NODES):
        if node is None:
            return None
        name = node.name()
        if name in _GIVES_SCORES:
            return node
        given = next_nodes(node)
        is_by_number = name in ("DivBackward0", "MulBackward0") and len(given) == 1
        if name == "AddBackward0":  # the bias is a leaf
            given = [other for other in given if other.name() != _LEAF]
            is_by_number = len(given) == 1
        if name not in _RESHAPED and not is_by_number:
            return None
        node = given[0] if given else None
    return None


def _are_distributions(labels: torch.Tensor | None) -> bool:
    """Whether each row is, or is minus, what sums to one and has no number below zero."""
    if (
        labels is None
        or labels.requires_grad
        or type(labels) is not torch.Tensor
        or labels.layout != torch.strided
        or not labels.is_floating_point()
        or not _is_row_of_scores(tuple(labels.shape))
        or not 0 < labels.numel() <= _MOST_ELEMENTS
        or capturing_graph(labels)
    ):
        return False
    with own_operations():
        sized = labels.detach().to(torch.float32).abs()
        sums = sized.sum(-1)
        one_sign = (labels.amin() >= 0) | (labels.amax() <= 0)
        return bool((one_sign & ((sums - 1).abs() <= 1e-3).all()).item())


def _picks_one_of_each_row(node: Any) -> bool:
    before, given = shape_at(*node.next_functions[0]), shape_at(node, 0)
    if before is None or given is None or not _is_row_of_scores(before):
        return False
    if node.name() == "GatherBackward0":
        return given[-1] == 1
    return len(before) == 2 and len(given) == 1  # [rows, labels]


def is_made_of_raw_scores(loss: torch.Tensor) -> bool:
    """Reads the graph of `loss`, and keeps nothing of it. Waits for a device."""
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
        name, edges = node.name(), node.next_functions
        inputs = [edge for edge in edges if edge[0] is not None]
        if name in _OF_SIZES and all(edge[0].name() == _LEAF for edge in inputs):
            continue  # a penalty on weights
        if name in _LINEAR:
            nodes += [edge[0] for edge in inputs]
        elif name in ("GatherBackward0", "IndexBackward0"):
            if not _picks_one_of_each_row(node) or not _are_raw(edges[0]):
                return False
            found = True
        elif name == "DivBackward0" and len(inputs) == 1 and edges[0][0] is not None:
            nodes.append(edges[0][0])
        elif name == "MulBackward0" and len(inputs) == 1:
            position = 0 if edges[0][0] is not None else 1
            if _is_row_of_scores(shape_at(*edges[position])) and _are_raw(edges[position]):
                if not _are_distributions(saved_by(node, "other" if position == 0 else "self")):
                    return False
                found = True
            else:
                nodes.append(edges[position][0])  # weighted
        else:
            return False
    return found


def _is_number_in(number: Any, low: float, high: float) -> bool:
    return isinstance(number, (int, float)) and low <= number <= high


def _cut_off_before(logarithm: Any) -> Any:
    """The node that cuts off at 0 and 1 what a logarithm is taken of. None: there is none."""
    node = logarithm.next_functions[0][0]
    for _ in range(_MOST_BEHIND):
        if node is None:
            return None
        name = node.name()
        if name == "ClampBackward1":
            low, high = getattr(node, "_saved_min", None), getattr(node, "_saved_max", None)
            is_at_ends = _is_number_in(low, 0, _EDGE) and _is_number_in(high, 1 - _EDGE, 1)
            return node if is_at_ends else None
        edges = [edge[0] for edge in node.next_functions if edge[0] is not None]
        is_passed_on = name in _RESHAPED or name in _PICKS or name == "RsubBackward1"  # 1 - p
        if not is_passed_on or len(edges) != 1:
            return None
        node = edges[0]
    return None


def _picked_from(edge: tuple[Any, int]) -> tuple[Any, int]:
    """Of what was picked of scores, before it was cut off, the scores."""
    for _ in range(_MOST_BEHIND):
        node = edge[0]
        if node is None or node.name() not in _PICKS:
            break
        edge = node.next_functions[0]
    return edge


def _are_mostly_outside(scores: torch.Tensor | None) -> bool:
    """Whether no softmax and no sigmoid can have given many of them."""
    if (
        scores is None
        or type(scores) is not torch.Tensor
        or scores.layout != torch.strided
        or not scores.is_floating_point()
        or not 0 < scores.numel() <= _MOST_ELEMENTS
        or capturing_graph(scores)
    ):
        return False
    with own_operations():
        values = scores.detach().to(torch.float32)
        outside = (values < -_BEYOND_ROUNDING) | (values > 1 + _BEYOND_ROUNDING)
        return bool(outside.float().mean().item() >= _LEAST_OUTSIDE)


def _has_weights(product: Any) -> bool:
    """Whether a factor of a product is a parameter: cosines of pairs of samples have none."""
    edges = product.next_functions
    for index in _FACTORS.get(product.name(), _FIRST_TWO):
        node = edges[index][0] if index < len(edges) else None
        while node is not None and node.name() in _RESHAPED:
            node = node.next_functions[0][0]
        if node is not None and is_leaf(node):
            return True
    return False


def _scores_a_row(product: Any) -> int:
    """How many numbers a layer gives for each sample, or each of its pixels."""
    shape = shape_at(product, 0) or ()
    is_convolution = product.name() == "ConvolutionBackward0"
    return 0 if len(shape) < 2 else shape[1 if is_convolution else -1]


def _are_chosen_by(node: Any) -> bool:
    """Whether a node picks one of each row, or multiplies rows with labels: as many numbers."""
    if node.name() in ("GatherBackward0", "IndexBackward0"):
        return _picks_one_of_each_row(node)
    edges = [edge for edge in node.next_functions if edge[0] is not None]
    if node.name() != "MulBackward0" or len(edges) != 1:
        return False
    is_first = node.next_functions[0][0] is not None
    labels, shape = saved_by(node, "other" if is_first else "self"), shape_at(*edges[0])
    if labels is None or labels.requires_grad:
        return False
    return _is_row_of_scores(shape) and tuple(labels.shape) == shape


def _is_picked_between(edge: tuple[Any, int], scores: Any) -> bool:
    """Whether one of each row is picked on the way from an edge to the scores."""
    for _ in range(_MOST_BEHIND):
        if edge[0] is None or edge == scores:
            break
        if _are_chosen_by(edge[0]):
            return True
        edge = edge[0].next_functions[0]
    return False


def _leads_elsewhere_to(start: Any, makers: set[Any]) -> bool:
    """Whether a term of the loss leads to scores without a logarithm of what is cut off."""
    level, seen = [start], {start}
    while level:
        after: list[Any] = []
        for node in level:
            if node in makers:
                return True
            if node.name() in _LOGARITHMS and _cut_off_before(node) is not None:
                continue
            for other in next_nodes(node):
                if other not in seen:
                    seen.add(other)
                    after.append(other)
        if len(seen) > _MOST_ELSEWHERE:
            break
        level = after
    return False


def cuts_off_raw_scores(loss: torch.Tensor) -> bool:
    """Whether the loss takes logarithms of raw scores that are cut off at 0 and 1.

    Labels must say which of at least three scores of each row count, and no other term of the loss
    may lead to these scores. Reads the graph of `loss`, and keeps nothing of it. Waits for a
    device, once, where such a logarithm is found.
    """
    nodes: list[tuple[Any, bool]] = [(loss.grad_fn, False)]  # and whether labels chose of it
    seen: set[tuple[Any, bool]] = set()
    found: Any = None  # where scores are cut off
    makers: set[Any] = set()
    while nodes:
        node, is_chosen = nodes.pop()
        if node is None or (node, is_chosen) in seen:
            continue
        seen.add((node, is_chosen))
        if len(seen) > _MOST_NODES:
            return False
        name = node.name()
        if name in _LOGARITHMS:
            cut = _cut_off_before(node)
            scores = None if cut is None else _picked_from(cut.next_functions[0])
            maker = None if scores is None else _maker_of_raw(scores)
            if maker is None:
                continue
            makers.add(maker)
            is_chosen = is_chosen or _is_picked_between((node, 0), scores)
            if is_chosen and _scores_a_row(maker) >= _FEWEST_SCORES and _has_weights(maker):
                found = cut
        elif name in _LINEAR or name in _PICKS or name in ("MulBackward0", "DivBackward0"):
            is_chosen = is_chosen or _are_chosen_by(node)
            nodes += [(edge[0], is_chosen) for edge in node.next_functions]
    if found is None or _leads_elsewhere_to(loss.grad_fn, makers):
        return False
    return _are_mostly_outside(saved_by(found, "self"))
