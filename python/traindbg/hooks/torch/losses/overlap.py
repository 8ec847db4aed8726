"""Whether a loss is an overlap of what a model marks with what it is given, and rises with it.

The coefficients of Dice, Jaccard and Tversky are a sum of products over sums of the same
probabilities: in the graph a quotient, above it the sum of probabilities times what has no
gradient, below it sums in which the same probabilities are again. They are to be made large, so the
loss is one less the coefficient, or minus it. A loss that is the coefficient itself, with a plus
sign and beside nothing else, makes the model mark everything but what it is to mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.losses.angles import LINEAR, RESHAPED, sign_of_factor, signed_terms

if TYPE_CHECKING:
    import torch

_MOST_NODES = 64
_PROBABILITIES = frozenset({"SigmoidBackward0", "SoftmaxBackward0"})
_LOGARITHMS = frozenset({"LogSigmoidBackward0", "LogSoftmaxBackward0"})
_LOGARITHM = frozenset({"LogBackward0"})
_SUMS = frozenset({"MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1"})
# What leaves a sum that is not negative as it is, or nearly so.
_AROUND_SUMS = RESHAPED | {"ClampBackward1", "ClampMinBackward0"}


def _inputs(node: Any) -> list[Any]:
    return [other for other, _ in node.next_functions]


def _below(node: Any, passed: frozenset[str]) -> Any:
    """The first node from `node` on that does more than those that are passed."""
    for _ in range(_MOST_NODES):
        if node is None or node.name() not in passed:
            return node
        node = next((other for other in _inputs(node) if other is not None), None)
    return None


def _probabilities(node: Any) -> Any:
    """The node that makes probabilities, where a node passes on nothing but a part of them."""
    node = _below(node, RESHAPED)
    if node is None:
        return None
    if node.name() == "ExpBackward0":
        behind = _below(_inputs(node)[0], RESHAPED)
        return node if behind is not None and behind.name() in _LOGARITHMS else None
    return node if node.name() in _PROBABILITIES else None


def _marked(node: Any) -> Any:
    """The probabilities of a sum of them, each times what has no gradient and is not negative."""
    for _ in range(_MOST_NODES):
        if node is None:
            return None
        name = node.name()
        given = [position for position, other in enumerate(_inputs(node)) if other is not None]
        if name == "MulBackward0":
            if len(given) != 1 or sign_of_factor(node, given[0]) <= 0:
                return None
            factors = _probabilities(_inputs(node)[given[0]])
            if factors is not None:
                return factors
        elif name == "AddBackward0":  # of a number
            if len(given) != 1:
                return None
        elif name not in _SUMS and name not in _AROUND_SUMS:
            return None
        if not given:
            return None
        node = _inputs(node)[given[0]]
    return None


def _has_sum_of(node: Any, probabilities: Any) -> bool:
    """Whether the same probabilities, or their squares, are among what is added up."""
    nodes = [node]
    for _ in range(_MOST_NODES):
        if not nodes:
            return False
        node = nodes.pop()
        if node is None:
            continue
        name, inputs = node.name(), _inputs(node)
        if name in _SUMS:
            summed = _below(inputs[0], RESHAPED | _SUMS)
            if summed is not None and summed.name() == "PowBackward0":
                summed = _below(_inputs(summed)[0], RESHAPED)
            if summed is not None and summed.name() == "ExpBackward0":
                summed = _probabilities(summed)
            if summed is not None and summed == probabilities:
                return True
            nodes.append(summed)
        elif name == "SubBackward0":
            nodes.append(inputs[0])
        elif name in ("AddBackward0", "MulBackward0") or name in _AROUND_SUMS:
            nodes += inputs
    return False


def _is_overlap(node: Any) -> bool:
    above, below = _inputs(node)
    if above is None or below is None:
        return False
    marked = _marked(above)
    return marked is not None and _has_sum_of(below, marked)


def lowers_overlap(loss: torch.Tensor) -> bool:
    """Whether a loss is made of overlaps alone and rises with each of them.

    Keeps nothing of the graph. Where there are factors or constants it waits for a device.
    """

    def is_term(node: Any) -> bool:
        return node.name() == "DivBackward0" and None not in _inputs(node)

    found = signed_terms(loss, is_term, _MOST_NODES, LINEAR | _AROUND_SUMS, _LOGARITHM)
    return bool(found) and all(sign > 0 and _is_overlap(node) for node, sign in found or ())
