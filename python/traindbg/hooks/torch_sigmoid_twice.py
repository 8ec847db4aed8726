"""Whether a loss takes the sigmoid or softmax of what a sigmoid gave, read from its graph.

A method of the model may give probabilities, or a function of the loop: no module returns them, nor
what they were made of. In the graph the loss function's own node follows the sigmoid's, with
nothing between that could make scores of the probabilities again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch_nodes import edges_of
from traindbg.hooks.torch_softmax_twice import JOINED, behind

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_STEPS = 8
_MOST_JOINED = 64
_SIGMOID = "SigmoidBackward0"
_BINARY = "BinaryCrossEntropyWithLogitsBackward0"
_OF_LABELS = ("NllLossBackward0", "NllLoss2DBackward0")
# What keeps probabilities between 0 and 1: another order of them, the largest ones, a mean.
_STAY_IN_UNIT = frozenset(
    {
        "AmaxBackward0", "ExpandBackward0", "GatherBackward0", "MaskedSelectBackward0",
        "MaxBackward0", "MeanBackward0", "MeanBackward1", "PermuteBackward0", "TBackward0",
        "TransposeBackward0",
    }
)  # fmt: skip


class SigmoidTwice(NamedTuple):
    """A sigmoid before a loss that computes one itself, or a softmax."""

    given: Any  # the node that is given to the sigmoid; None: a leaf without gradient
    is_binary: bool  # the loss is one with logits, and not a cross-entropy of classes


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


def sigmoid_twice(nodes: Iterable[Any]) -> SigmoidTwice | None:
    """The first one among the nodes of a graph; None: there is none."""
    for node in nodes:
        name = node.name()
        if name == _BINARY:
            given = edges_of(node)[0]
        elif name in _OF_LABELS:
            logarithm = behind(edges_of(node)[0])
            if logarithm is None or logarithm.name() != "LogSoftmaxBackward0":
                continue
            given = edges_of(logarithm)[0]
        else:
            continue
        sigmoid = _sigmoid_behind(given)
        if sigmoid is not None:
            return SigmoidTwice(edges_of(sigmoid)[0], name == _BINARY)
    return None
