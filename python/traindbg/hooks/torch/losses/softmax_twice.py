"""Whether the logarithm of a softmax is taken of what a softmax gave, read from a loss's graph.

A loss function is seen to be given probabilities by their values. A distribution is not: what
`Categorical(logits=probabilities)` computes are a logsumexp and a difference. Their nodes follow
each other in the graph, along the same dimension, with nothing between that makes scores of the
probabilities again, as a logarithm does, or a division by a temperature. A logsumexp alone is no
logarithm of a softmax: of weights it is their smooth maximum, which a loss may lower. It is one
where it and what it was taken of are subtracted from each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.base.nodes import edges_of, shape_at

if TYPE_CHECKING:
    from collections.abc import Collection

_MOST_STEPS = 16
_SUM = "SumBackward1"
# What passes on probabilities in another shape or some rows of them, or keeps them from 0.
_PASS_ON = frozenset(
    {
        "AliasBackward0", "ClampBackward1", "ClampMinBackward0", "CloneBackward0",
        "IndexBackward0", "IndexSelectBackward0", "MaskedFillBackward0", "ReshapeAliasBackward0",
        "SelectBackward0", "SliceBackward0", "SqueezeBackward0", "SqueezeBackward1",
        "SqueezeBackward2", "ToCopyBackward0", "UnsafeViewBackward0", "UnsqueezeBackward0",
        "ViewBackward0",
    }
)  # fmt: skip
JOINED = ("CatBackward0", "StackBackward0")
# What picks the value of a label in each row.
_PICKED = frozenset(
    {
        "GatherBackward0", "IndexBackward0", "SqueezeBackward0", "SqueezeBackward1",
        "SumBackward1", "ToCopyBackward0", "UnsqueezeBackward0", "ViewBackward0",
    }
)  # fmt: skip

_Along = tuple[int, int]  # a dimension, from the last one on, and its size


def behind(node: Any) -> Any:
    """The node whose values this one passes on."""
    for _ in range(_MOST_STEPS):
        if node is None or node.name() not in _PASS_ON:
            return node
        node = edges_of(node)[0]
    return None


def _signed(number: int) -> int:
    """A dimension as it was given: it is saved without a sign."""
    return number if number < 1 << 63 else number - (1 << 64)


def _along(node: Any, made: Any) -> _Along | None:
    """The one dimension along which a node works; `made`: a node of the shape that it is given."""
    saved = getattr(node, "_saved_dim", None)
    dims = saved if isinstance(saved, tuple) else (saved,)
    shape = shape_at(made, 0)
    if not shape or len(dims) != 1 or not isinstance(dims[0], int):
        return None
    number = _signed(dims[0])
    number = number - len(shape) if number >= 0 else number
    size = shape[number] if -len(shape) <= number else 0
    return (number, size) if size > 1 else None


def _summed(node: Any, what: Any) -> _Along | None:
    """Along which dimension a node sums what another one made; None: it does not."""
    node = behind(node)
    if node is None or node.name() != _SUM or edges_of(node)[0] is not what:
        return None
    return _along(node, what)


def _softmax(node: Any) -> tuple[Any, _Along | None]:
    """What a softmax is given, and along which dimension it is; None: the node is none."""
    if node is None:
        return None, None
    name, edges = node.name(), edges_of(node)
    if name == "SoftmaxBackward0":
        return edges[0], _along(node, node)
    if name == "DivBackward0" and len(edges) == 2:
        part = behind(edges[0])
        if part is None:
            return None, None
        if part.name() == "ExpBackward0":  # written out
            return edges_of(part)[0], _summed(edges[1], part)
        along = _summed(edges[1], edges[0])  # a distribution makes its probabilities sum to one
        given, own = _softmax(part) if along is not None else (None, None)
        return given, own if own == along else None
    return None, None


def _softmaxes(node: Any) -> tuple[Any, _Along | None]:
    """The same of several that are joined along another dimension, with nothing else; the first."""
    if node is None or node.name() not in JOINED:
        return _softmax(node)
    shape, saved = shape_at(node, 0), getattr(node, "_saved_dim", None)
    found = [_softmax(behind(other)) for other in edges_of(node)]
    along = found[0][1]
    if along is None or not shape or not isinstance(saved, int):
        return None, None
    number = _signed(saved)
    number = number - len(shape) if number >= 0 else number
    # A dimension that is put in behind it moves it.
    is_aside = number < along[0] or (number > along[0] and node.name() == "CatBackward0")
    is_all = all(given is not None and own == along for given, own in found)
    return found[0] if is_aside and is_all else (None, None)


def _is_made_of(node: Any, given: Any) -> bool:
    """Whether a node is `given`, or picks values of it by labels."""
    for _ in range(_MOST_STEPS):
        if node is None or node is given:
            return node is not None
        edges = edges_of(node)
        is_masked = node.name() == "MulBackward0" and sum(one is not None for one in edges) == 1
        if not is_masked and node.name() not in _PICKED:
            return False
        node = next((one for one in edges if one is not None), None)
    return False


def _is_subtracted(logarithm: Any, given: Any, nodes: Collection[Any]) -> bool:
    """Whether the logarithm of a sum and what it was taken of are subtracted from each other."""
    for node in nodes:
        if node.name() == "SubBackward0":
            one, other = edges_of(node)
            if behind(one) is logarithm and _is_made_of(other, given):
                return True
            if behind(other) is logarithm and _is_made_of(one, given):
                return True
    return False


def _given_to_logarithm(node: Any) -> tuple[Any, _Along | None, bool]:
    """What a node takes the logarithm of the softmax of, or the part of it that is a sum.

    And whether it is that part only.
    """
    name = node.name()
    if name in ("LogSoftmaxBackward0", "LogsumexpBackward0"):
        given = edges_of(node)[0]
        along = None if given is None else _along(node, given)
        return given, along, name == "LogsumexpBackward0"
    if name != "LogBackward0":
        return None, None, False
    inner = behind(edges_of(node)[0])
    if inner is not None and inner.name() == _SUM:
        part = edges_of(inner)[0]
        if part is None or part.name() != "ExpBackward0":
            return None, None, False
        return edges_of(part)[0], _along(inner, part), True
    return (*_softmax(inner), False)


def given_to_first_softmax(nodes: Collection[Any]) -> Any:
    """The node that is given to the first one of two softmaxes; None: there are no two."""
    for node in nodes:
        given, second, is_sum = _given_to_logarithm(node)
        if given is None or second is None:
            continue
        before, first = _softmaxes(behind(given))
        if before is None or first != second:
            continue
        if not is_sum or _is_subtracted(node, given, nodes):
            return before
    return None
