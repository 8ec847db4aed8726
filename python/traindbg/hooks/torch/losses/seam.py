"""Whether a loss compares angles by their difference, as if they did not begin anew.

An angle that `atan2` gives lies within one turn, and so do the measured ones. Two directions that
lie close together on both sides of the seam are then nearly a whole turn apart, and the loss drives
the model away from what is right, all the way round. A difference that was brought back into half a
turn, a cosine of it, or the shorter one of both ways is none of this.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.nodes import SAME_ELEMENTS, SAME_VALUE, edges_of, saved_by
from traindbg.hooks.torch.losses.angles import LINEAR

_MOST_NODES = 64
_MOST_STEPS = 16
_MOST_VALUES = 1 << 20
_NEAR_SEAM = 1 / 12  # of a turn: labels must lie as near to it, on both of its sides
_ROUNDING = 1e-3  # of a turn
# What lies between a loss and what it compares, beside sums and means.
_PASSED = LINEAR | SAME_ELEMENTS | {"DivBackward0", "MulBackward0", "SqrtBackward0"}
# They keep what they compare.
_COMPARE = {
    "HuberLossBackward0": "huber_loss",
    "MseLossBackward0": "mse_loss",
    "SmoothL1LossBackward0": "smooth_l1_loss",
}
# They keep the difference that they are of.
_OF_DIFFERENCE = frozenset({"AbsBackward0", "PowBackward0"})
_ANGLES = frozenset({"AngleBackward0", "Atan2Backward0"})
# What shifts an angle, or brings it into one turn; the length of a turn is the same.
_SHIFTED = frozenset({"AddBackward0", "RemainderBackward0", "SubBackward0"})


def _given(node: Any) -> list[int]:
    """The positions of the inputs that have a gradient."""
    return [position for position, other in enumerate(edges_of(node)) if other is not None]


def _factor(node: Any, position: int) -> float | None:
    """What a product or quotient multiplies its input with, where that is one positive number."""
    is_product = node.name() == "MulBackward0"
    if not is_product and position != 0:
        return None
    factor = saved_by(node, "self" if position == 1 else "other")
    if factor is None or type(factor) is not torch.Tensor:
        return None
    if factor.numel() != 1 or factor.is_complex():
        return None
    with own_operations():
        value = float(factor.detach().item())
    if not 0 < value < math.inf:
        return None
    return value if is_product else 1 / value


def _angle(node: Any) -> tuple[Any, float, bool] | None:
    """The node that makes an angle, what it is multiplied with, and whether that is all."""
    factor, is_all = 1.0, True
    for _ in range(_MOST_STEPS):
        if node is None or node.name() in _ANGLES:
            return None if node is None else (node, factor, is_all)
        name, given = node.name(), _given(node)
        if len(given) != 1:
            return None
        if name in ("DivBackward0", "MulBackward0"):
            times = _factor(node, given[0])
            if times is None:
                return None
            factor *= times
        elif name == "Rad2DegBackward0":
            factor *= 180 / math.pi
        elif name in _SHIFTED:
            is_all = False
        elif name not in SAME_VALUE:
            return None
        node = edges_of(node)[given[0]]
    return None


def _value(node: Any) -> torch.Tensor | None:
    """The angle that a node made, computed anew from what it keeps."""
    given = saved_by(node, "self")
    if node.name() == "AngleBackward0":
        return None if given is None else given.detach().angle()
    other = saved_by(node, "other")
    return None if given is None or other is None else torch.atan2(given.detach(), other.detach())


def _ignores_seam(difference: torch.Tensor, labels: torch.Tensor, turn: float) -> bool:
    """Whether labels lie on both sides of the seam and some differences go the longer way round."""
    if type(difference) is not torch.Tensor or type(labels) is not torch.Tensor:
        return False
    if labels.numel() != difference.numel() or not 2 <= labels.numel() <= _MOST_VALUES:
        return False
    low, high = (float(each) for each in labels.aminmax())
    # A seam is where `atan2` has it, or where a turn begins at 0.
    for first in (-turn / 2, 0.0):
        edge, rounding = _NEAR_SEAM * turn, _ROUNDING * turn
        if not (first - rounding <= low <= first + edge):
            continue
        if not (first + turn - edge <= high <= first + turn + rounding):
            continue
        return bool((difference.abs() > turn / 2 + rounding).any())
    return False


def _compares(node: Any) -> bool:
    """Whether a node of a loss function compares an angle of a model with one that is given."""
    given = _given(node)
    if len(given) != 1:
        return False
    angle = _angle(edges_of(node)[given[0]])
    compared, labels = saved_by(node, "self"), saved_by(node, "target")
    if angle is None or compared is None or labels is None:
        return False
    if given[0] == 1:
        compared, labels = labels, compared
    if compared.shape != labels.shape:
        return False
    with own_operations():
        compared, labels = compared.detach(), labels.detach()
        return _ignores_seam(compared - labels, labels, 2 * math.pi * angle[1])


def _is_of_difference(node: Any) -> bool:
    """The same of a difference that is written out, of which a power or the size is taken."""
    inner = edges_of(node)[0]
    while inner is not None and inner.name() in SAME_VALUE:
        inner = edges_of(inner)[0]
    if inner is None or inner.name() != "SubBackward0" or getattr(inner, "_saved_alpha", 1) != 1:
        return False
    given = _given(inner)
    angle = _angle(edges_of(inner)[given[0]]) if len(given) == 1 else None
    difference = saved_by(node, "self")
    if angle is None or not angle[2] or difference is None or difference.is_complex():
        return False
    with own_operations():
        compared = _value(angle[0])
        if compared is None or compared.numel() != difference.numel():
            return False
        difference = difference.detach().reshape(-1) * (1 if given[0] == 0 else -1)
        labels = compared.reshape(-1) * angle[1] - difference
        return _ignores_seam(difference, labels, 2 * math.pi * angle[1])


def ignores_seam(loss: torch.Tensor) -> str | None:
    """The function by which angles are compared as if they did not begin anew.

    An empty name where that is written out; None where there are no such angles. Keeps nothing of
    the graph. Where angles are compared it waits for a device.
    """
    if capturing_graph(loss):
        return None
    nodes: list[Any] = [loss.grad_fn]
    seen: set[Any] = set()
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if len(seen) > _MOST_NODES:
            return None
        name = node.name()
        if name in _COMPARE:
            if _compares(node):
                return _COMPARE[name]
        elif name in _OF_DIFFERENCE:
            if _is_of_difference(node):
                return ""
        elif name in _PASSED:
            nodes += edges_of(node)
    return None
