"""Whether a loss is a ratio of signal to distortion, in decibels say, and rises with it.

Such a ratio (SNR, SI-SNR, SI-SDR) tells how well a signal was made, so it is to be large, and a
loss is minus it. In the graph it is a logarithm of a quotient, or two logarithms, whose divisor is
the power of a difference: of what was made and the data, or and its projection onto the data. A
difference from what is trained itself, such as its own mean, is none: spread may be wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.base.nodes import saved_by, shape_at
from traindbg.hooks.torch.losses.angles import LINEAR, RESHAPED, signed_terms

if TYPE_CHECKING:
    import torch

_MOST_NODES = 256
_MOST_STEPS = 16
_LOGARITHMS = frozenset({"LogBackward0", "Log2Backward0", "Log10Backward0"})
_SUMS = frozenset({"MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1"})
_NORMS = frozenset({"LinalgVectorNormBackward0", "NormBackward1", "NormBackward2"})
# What lies around a power: another shape, a small number that is added, a limit, a root.
_AROUND_POWERS = RESHAPED | {
    "AddBackward0", "ClampBackward1", "ClampMinBackward0", "SqrtBackward0"
}  # fmt: skip
# What picks some of several ratios, as the best order of what was told apart, or joins them.
_PICKS = RESHAPED | {
    "AmaxBackward0", "AminBackward0", "CatBackward0", "ClampBackward1", "ClampMaxBackward0",
    "ClampMinBackward0", "GatherBackward0", "MaxBackward0", "MaxBackward1", "MinBackward0",
    "MinBackward1", "StackBackward0",
}  # fmt: skip


def _inputs(node: Any) -> list[Any]:
    return [other for other, _ in node.next_functions]


def _only_input(node: Any) -> Any:
    """The one that has a gradient; None: there are several, or none."""
    given = [other for other in _inputs(node) if other is not None]
    return given[0] if len(given) == 1 else None


def _squared(node: Any) -> Any:
    """What a power is of: a sum or mean of squares, or a norm; None: the node gives no power."""
    for _ in range(_MOST_STEPS):
        if node is None:
            return None
        name = node.name()
        if name in _NORMS:
            return _only_input(node)
        is_square = name == "PowBackward0" and getattr(node, "_saved_exponent", None) == 2
        if name in _SUMS:
            inner = _inputs(node)[0]
            if inner is not None and inner.name() == "PowBackward0":
                is_of_squares = getattr(inner, "_saved_exponent", None) == 2
                return _inputs(inner)[0] if is_of_squares else None
            if inner is not None and inner.name() == "MulBackward0":
                one, other = _inputs(inner)
                return one if one is not None and one is other else None
            node = inner
        elif name in _AROUND_POWERS or is_square:  # a square of a norm, here
            node = _only_input(node)
        else:
            return None
    return None


def _elements(node: Any) -> int:
    shape = shape_at(node, 0)
    count = 1
    for size in shape or (0,):
        count *= size
    return count


def _is_projection(node: Any) -> bool:
    """Whether it is data, each row times one number that has a gradient."""
    for _ in range(_MOST_STEPS):
        if node is None:
            return False
        name = node.name()
        if name == "MulBackward0":
            one, other = _inputs(node)
            if (one is None) == (other is None):
                return False
            data = saved_by(node, "self" if one is None else "other")
            number = other if one is None else one
            if data is not None and data.numel() == _elements(node) > _elements(number):
                return True
        elif name != "DivBackward0" and name not in RESHAPED:
            return False
        node = _only_input(node)
    return False


def _compared(node: Any) -> tuple[bool, bool]:
    """Whether a power is one of a difference from data, and of one from a projection onto data."""
    node = _squared(node)
    for _ in range(_MOST_STEPS):
        if node is None or node.name() not in RESHAPED:
            break
        node = _only_input(node)
    if node is None or node.name() != "SubBackward0":
        return False, False
    inputs = _inputs(node)
    return None in inputs, any(map(_is_projection, inputs))


def _behind(node: Any) -> Any:
    """What a logarithm is taken of, but for small numbers and limits."""
    for _ in range(_MOST_STEPS):
        if node is None or (node.name() not in RESHAPED and node.name() not in _AROUND_POWERS):
            return node
        after = _only_input(node)
        if after is None or node.name() == "SqrtBackward0":
            return node
        node = after
    return None


def _is_ratio(node: Any) -> bool:
    """Whether it is the power of a signal over that of a distortion."""
    above, below = _inputs(node)
    if below is None:
        return False
    if above is None:
        data = saved_by(node, "self")
        return data is not None and data.dim() > 0 and any(_compared(below))
    is_data, is_projected = _compared(below)
    is_distortion = any(_compared(above))
    return _squared(above) is not None and not is_distortion and (is_data or is_projected)


def _term(node: Any) -> int:
    """Whether a logarithm rises (1) or falls (-1) with a ratio of signal to distortion.

    2: it is that of a power, beside which there may be one of a distortion. 0: of something else.
    """
    given = _inputs(node)[0]
    inner = _behind(given)
    if inner is not None and inner.name() == "DivBackward0" and _is_ratio(inner):
        return 1
    if inner is not None and _compared(given)[1]:  # the logarithm of a distortion by itself
        return -1
    is_power = inner is not None and _squared(given) is not None
    return 2 if is_power and not any(_compared(given)) else 0


def lowers_signal_ratio(loss: torch.Tensor) -> bool:
    """Whether a loss is made of such ratios alone and rises with each of them.

    Keeps nothing of the graph. Where there are factors or constants it waits for a device.
    """
    logarithms = signed_terms(
        loss, lambda node: node.name() in _LOGARITHMS, _MOST_NODES, LINEAR, _PICKS
    )
    found = [(_term(node), sign) for node, sign in logarithms or ()]
    ratios = [term * sign for term, sign in found if abs(term) == 1]
    return bool(ratios) and min(ratios) > 0 and all(term for term, _ in found)
