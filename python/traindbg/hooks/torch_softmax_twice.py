"""Whether the logarithm of a softmax is taken of what a softmax gave, read from a loss's graph.

A loss function is seen to be given probabilities by their values. A distribution is not: what
`Categorical(logits=probabilities)` computes are a logsumexp and a difference. Their nodes follow
each other in the graph, along the same dimension, with nothing between that makes scores of the
probabilities again, as a logarithm does, or a division by a temperature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch_loss_pairs import shape_at

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_STEPS = 16
_LOGARITHMS = ("LogSoftmaxBackward0", "LogsumexpBackward0")
_SUM = "SumBackward1"
# What passes on probabilities in another shape or some rows of them, or keeps them from 0.
_PASS_ON = frozenset(
    {
        "AliasBackward0", "CatBackward0", "ClampBackward1", "ClampMinBackward0", "CloneBackward0",
        "IndexBackward0", "IndexSelectBackward0", "MaskedFillBackward0", "ReshapeAliasBackward0",
        "SelectBackward0", "SliceBackward0", "SqueezeBackward0", "SqueezeBackward1",
        "SqueezeBackward2", "StackBackward0", "ToCopyBackward0", "UnsafeViewBackward0",
        "UnsqueezeBackward0", "ViewBackward0",
    }
)  # fmt: skip

_Along = tuple[int, int]  # a dimension, from the last one on, and its size


def _edges(node: Any) -> list[Any]:
    return [other for other, _ in node.next_functions]


def _behind(node: Any) -> Any:
    """The node whose values this one passes on."""
    for _ in range(_MOST_STEPS):
        if node is None or node.name() not in _PASS_ON:
            return node
        node = _edges(node)[0]
    return None


def _along(node: Any, made: Any) -> _Along | None:
    """The one dimension along which a node works; `made`: a node of the shape that it is given."""
    saved = getattr(node, "_saved_dim", None)
    dims = saved if isinstance(saved, tuple) else (saved,)
    shape = shape_at(made, 0)
    if not shape or len(dims) != 1 or not isinstance(dims[0], int):
        return None
    number = dims[0] if dims[0] < 1 << 63 else dims[0] - (1 << 64)  # as it is saved
    number = number - len(shape) if number >= 0 else number
    size = shape[number] if -len(shape) <= number else 0
    return (number, size) if size > 1 else None


def _summed(node: Any, what: Any) -> _Along | None:
    """Along which dimension a node sums what another one made; None: it does not."""
    node = _behind(node)
    if node is None or node.name() != _SUM or _edges(node)[0] is not what:
        return None
    return _along(node, what)


def _softmax(node: Any) -> tuple[Any, _Along | None]:
    """What a softmax is given, and along which dimension it is; None: the node is none."""
    if node is None:
        return None, None
    name, edges = node.name(), _edges(node)
    if name == "SoftmaxBackward0":
        return edges[0], _along(node, node)
    if name == "DivBackward0" and len(edges) == 2:
        part = _behind(edges[0])
        if part is None:
            return None, None
        if part.name() == "ExpBackward0":  # written out
            return _edges(part)[0], _summed(edges[1], part)
        along = _summed(edges[1], edges[0])  # a distribution makes its probabilities sum to one
        given, own = _softmax(part) if along is not None else (None, None)
        return given, own if own == along else None
    return None, None


def _given_to_logarithm(node: Any) -> tuple[Any, _Along | None]:
    """What a node takes the logarithm of the softmax of, or the part of it that is a sum."""
    name = node.name()
    if name in _LOGARITHMS:
        given = _edges(node)[0]
        return given, None if given is None else _along(node, given)
    if name != "LogBackward0":
        return None, None
    inner = _behind(_edges(node)[0])
    if inner is not None and inner.name() == _SUM:
        part = _edges(inner)[0]
        if part is None or part.name() != "ExpBackward0":
            return None, None
        return _edges(part)[0], _along(inner, part)
    return _softmax(inner)


def given_to_first_softmax(nodes: Iterable[Any]) -> Any:
    """The node that is given to the first one of two softmaxes; None: there are no two."""
    for node in nodes:
        given, second = _given_to_logarithm(node)
        if given is None or second is None:
            continue
        before, first = _softmax(_behind(given))
        if before is not None and first == second:
            return before
    return None
