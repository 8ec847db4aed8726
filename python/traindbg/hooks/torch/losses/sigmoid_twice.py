"""Whether a loss takes the sigmoid or softmax of what a sigmoid gave, read from its graph.

A method of the model may give probabilities, or a function of the loop: no module returns them, nor
what they were made of. In the graph the loss function's own node follows the sigmoid's, with
nothing between that could make scores of the probabilities again. A loss that is written out takes
the logarithm of a sigmoid, or of one less it, and that sigmoid follows the other one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch.base.nodes import edges_of
from traindbg.hooks.torch.losses.softmax_twice import JOINED, behind

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_STEPS = 8
_MOST_JOINED = 64
_SIGMOID = "SigmoidBackward0"
_BINARY = "BinaryCrossEntropyWithLogitsBackward0"
_OF_PROBABILITIES = frozenset({"BinaryCrossEntropyBackward0", "LogBackward0"})
_OF_SIGMOID = "LogSigmoidBackward0"  # a sigmoid's logarithm in one
_OF_LABELS = ("NllLossBackward0", "NllLoss2DBackward0")
# What keeps probabilities between 0 and 1: another order of them, the largest ones, a mean.
_STAY_IN_UNIT = frozenset(
    {
        "AmaxBackward0", "ExpandBackward0", "GatherBackward0", "MaskedSelectBackward0",
        "MaxBackward0", "MeanBackward0", "MeanBackward1", "PermuteBackward0", "TBackward0",
        "TransposeBackward0",
    }
)  # fmt: skip

# What makes the probability of what is true of that of a label: a mask of labels, one less it.
_OF_LABELLED = frozenset({"AddBackward0", "MulBackward0", "RsubBackward1", "WhereBackward0"})
# The facts: which loss a sigmoid lies before.
BEFORE_LOGITS = "sigmoid_twice"  # one with logits
BEFORE_SOFTMAX = "sigmoid_before_softmax"  # a cross-entropy of classes
BEFORE_LOGARITHM = "sigmoid_before_logarithm"  # the logarithm of another sigmoid


class SigmoidTwice(NamedTuple):
    """A sigmoid before a loss that computes one itself, or a softmax."""

    given: Any  # the node that is given to the sigmoid; None: a leaf without gradient
    fact: str


def _sigmoid_behind(node: Any) -> Any:
    """The sigmoid whose values a node passes on, the first one of several that are joined."""
    for _ in range(_MOST_STEPS):
        node = behind(node)
        if node is None or node.name() == _SIGMOID:
            return node
        edges = edges_of(node)
        if node.name() in JOINED and len(edges) <= _MOST_JOINED:
            found = [behind(other) for other in edges]
            is_all = all(one is not None and one.name() == _SIGMOID for one in found)
            return found[0] if is_all and found else None
        if node.name() not in _STAY_IN_UNIT:
            return None
        node = edges[0]
    return None


def _given_to_sigmoid(node: Any) -> Any:
    """What a sigmoid is given, be it written out as 1 / (1 + exp(-x)); None: the node is none."""
    if node.name() == _SIGMOID:
        return edges_of(node)[0]
    if node.name() == "MulBackward0":  # 1 times what follows
        node = next((one for one in edges_of(node) if one is not None), None)
    for name in ("ReciprocalBackward0", "AddBackward0", "ExpBackward0", "NegBackward0"):
        edges = [] if node is None or node.name() != name else edges_of(node)
        given = [one for one in edges if one is not None]
        if len(given) != 1:
            return None
        node = given[0]
    return node


def _given_to_probability(node: Any, depth: int = 0) -> Any:
    """What the sigmoid is given whose value, or one less it, a node passes on.

    Perhaps with a small number added, or one for each label, as the probability of what is true.
    None: it is not one sigmoid, or none.
    """
    node = behind(node)
    if node is None or depth > _MOST_STEPS:
        return None
    given = _given_to_sigmoid(node)
    if given is not None:
        return given
    if node.name() not in _OF_LABELLED:
        return None
    known = [one for one in edges_of(node) if one is not None]
    if not known or (len(known) > 1 and node.name() == "MulBackward0"):
        return None
    found = [_given_to_probability(one, depth + 1) for one in known[:2]]
    return found[0] if all(one is not None and one is found[0] for one in found) else None


def sigmoid_twice(nodes: Iterable[Any]) -> SigmoidTwice | None:
    """The first one among the nodes of a graph; None: there is none."""
    for node in nodes:
        name = node.name()
        fact = BEFORE_LOGITS
        if name == _BINARY:
            given = edges_of(node)[0]
        elif name in _OF_LABELS:
            logarithm = behind(edges_of(node)[0])
            if logarithm is None or logarithm.name() != "LogSoftmaxBackward0":
                continue
            given, fact = edges_of(logarithm)[0], BEFORE_SOFTMAX
        elif name in _OF_PROBABILITIES:
            given, fact = _given_to_probability(edges_of(node)[0]), BEFORE_LOGARITHM
        elif name == _OF_SIGMOID:
            given, fact = edges_of(node)[0], BEFORE_LOGARITHM
        else:
            continue
        sigmoid = _sigmoid_behind(given)
        if sigmoid is not None:
            return SigmoidTwice(edges_of(sigmoid)[0], fact)
    return None
