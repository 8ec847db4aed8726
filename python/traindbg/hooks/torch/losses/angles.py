"""Whether a loss is made of cosines between outputs alone, each with a gradient on both sides.

The squared distance of two vectors of length 1 is one of them: 2 less twice their cosine. Such a
loss asks that samples point the same way, whatever their lengths, and lets both of what it
compares move: it is least where all of them point one way. Where one side is detached (SimSiam,
BYOL), cosines of other pairs go into a softmax (contrastive losses), or some of them are to be
small (pairs that do not belong together), it is none of these. A cosine with what has
no gradient, a teacher's output say, is one whose sign can be wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.nodes import saved_by

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_NODES = 64
_MOST_STEPS = 16
# What gives a tensor another shape, or a copy of a part of it.
RESHAPED = frozenset(
    {
        "CloneBackward0",
        "ExpandBackward0",
        "IndexBackward0",
        "PermuteBackward0",
        "ReshapeAliasBackward0",
        "SelectBackward0",
        "SliceBackward0",
        "SqueezeBackward0",
        "SqueezeBackward1",
        "SqueezeBackward2",
        "TBackward0",
        "ToCopyBackward0",
        "TransposeBackward0",
        "UnbindBackward0",
        "UnsafeViewBackward0",
        "UnsqueezeBackward0",
        "ViewBackward0",
    }
)
# What lies between a loss and its cosines: sums, means and signs. Factors are looked at.
LINEAR = frozenset(
    {
        "AddBackward0",
        "MeanBackward0",
        "MeanBackward1",
        "NegBackward0",
        "RsubBackward1",
        "SubBackward0",
        "SumBackward0",
        "SumBackward1",
        "ToCopyBackward0",
    }
)
_TURNED_ROUND = frozenset({"NegBackward0", "RsubBackward1"})
_NORMS = frozenset({"LinalgVectorNormBackward0", "NormBackward1", "NormBackward2"})
_LAST = 2**64 - 1  # -1, as a node shows it
_AROUND_NORMS = RESHAPED | {"AddBackward0", "ClampMinBackward0", "MaximumBackward0"}


def _inputs(node: Any) -> list[Any]:
    return [other for other, _ in node.next_functions]


def _behind(node: Any, passed: frozenset[str], names: frozenset[str]) -> Any:
    """The first node of these names behind others that are passed; None where there is none."""
    for _ in range(_MOST_STEPS):
        if node is None or node.name() in names:
            return node
        if node.name() not in passed:
            return None
        node = next((other for other in _inputs(node) if other is not None), None)
    return None


def _division_by_norm(node: Any) -> tuple[Any, Any]:
    """Of something divided by its norm, with a gradient: the nodes of both; or None twice."""
    for _ in range(_MOST_STEPS):
        if node is None or node.name() not in RESHAPED:
            break
        node = _inputs(node)[0]
    if node is None or node.name() != "DivBackward0":
        return None, None
    divided, by = _inputs(node)
    norm = _behind(by, _AROUND_NORMS, _NORMS) if divided is not None else None
    return (None, None) if norm is None else (node, norm)


def _is_unit_vector(node: Any) -> bool:
    return _division_by_norm(node)[1] is not None


def _is_row_of_length_one(node: Any) -> bool:
    """Whether the norm is that of each row, and not of a column or of all."""
    division, norm = _division_by_norm(node)
    divisor = saved_by(division, "other") if norm is not None else None
    over = getattr(norm, "_saved_dim", None)
    if divisor is None or divisor.dim() < 2 or over is None or len(over) != 1:
        return False
    return over[0] in (divisor.dim() - 1, _LAST)


def sign_of_factor(node: Any, position: int) -> int:
    """Of what the input at `position` of a product or quotient is multiplied with.

    0 where its elements are of both signs, are all zero, or cannot be looked at.
    """
    factor = saved_by(node, "self" if position == 1 else "other")
    if (
        factor is None
        or type(factor) is not torch.Tensor
        or factor.is_complex()
        or factor.numel() == 0
    ):
        return 0
    with own_operations():
        low, high = (float(each) for each in factor.detach().aminmax())
    return 1 if low >= 0 and high > 0 else -1 if high <= 0 and low < 0 else 0


def signs_of_inputs(node: Any, inputs: list[Any]) -> list[int]:
    """1 where the node's value rises with the input, -1 where it falls; 0: neither is known."""
    name = node.name()
    if name in ("DivBackward0", "MulBackward0"):
        given = [position for position, other in enumerate(inputs) if other is not None]
        is_divisor = name == "DivBackward0" and given != [0]
        if len(given) != 1 or is_divisor:
            return [0] * len(inputs)
        return [sign_of_factor(node, given[0])] * len(inputs)
    if name in _TURNED_ROUND:
        return [-1] * len(inputs)
    second = -1 if name == "SubBackward0" else 1
    factor = getattr(node, "_saved_alpha", 1)  # of the second
    if name in ("AddBackward0", "SubBackward0") and len(inputs) == 2:
        return [1, second if factor > 0 else -second]
    return [1] * len(inputs)


def _cosine(node: Any, inputs: list[Any]) -> int:
    """How many of the two unit vectors whose cosine a node computes have a gradient; 0: it is none.

    One without a gradient is what the node keeps of it: rows of length 1.
    """
    if node.name() != "MulBackward0" or len(inputs) != 2:
        return 0
    given = [position for position, other in enumerate(inputs) if other is not None]
    if not all(_is_unit_vector(inputs[position]) for position in given):
        return 0
    if len(given) == 1:
        other = saved_by(node, "other" if given[0] == 0 else "self")
        if other is None or type(other) is not torch.Tensor or other.is_complex():
            return 0
        if other.dim() < 2 or other.shape[-1] < 2:
            return 0
        with own_operations():
            sizes = other.detach().square().sum(-1)
            if not bool(((sizes - 1).abs() <= 1e-3).all()):
                return 0
    return len(given)


def _is_distance(node: Any, inputs: list[Any]) -> bool:
    """Whether it is the squared difference of two unit vectors that have a gradient."""
    if node.name() == "PowBackward0":
        if getattr(node, "_saved_exponent", None) != 2 or inputs[0] is None:
            return False
        if inputs[0].name() != "SubBackward0" or getattr(inputs[0], "_saved_alpha", 1) != 1:
            return False
        inputs = _inputs(inputs[0])
    elif node.name() != "MseLossBackward0":
        return False
    return len(inputs) == 2 and all(map(_is_row_of_length_one, inputs))


def signed_terms(
    loss: torch.Tensor,
    is_term: Callable[[Any], bool],
    most_nodes: int,
    linear: frozenset[str] = LINEAR,
    rising: frozenset[str] = frozenset(),
) -> list[tuple[Any, int]] | None:
    """The nodes that a loss is made of, and whether it rises (1) or falls (-1) with each of them.

    Passed on are sums, means, signs and factors (`linear`), and what rises with all that it is
    given (`rising`). None: it is made of something else as well, or of more nodes. Keeps nothing of
    the graph. Where there are factors or constants it waits for a device.
    """
    if capturing_graph(loss):
        return None
    nodes: list[tuple[Any, int]] = [(loss.grad_fn, 1)]
    seen: set[tuple[Any, int]] = set()
    found: list[tuple[Any, int]] = []
    while nodes:
        node, sign = nodes.pop()
        if node is None or (node, sign) in seen:
            continue
        seen.add((node, sign))
        if len(seen) > most_nodes:
            return None
        name, inputs = node.name(), _inputs(node)
        if is_term(node):
            found.append((node, sign))
        elif name in linear or name in ("DivBackward0", "MulBackward0"):
            for other, turn in zip(inputs, signs_of_inputs(node, inputs), strict=True):
                if other is not None and turn == 0:
                    return None
                nodes.append((other, sign * turn))
        elif name in rising:
            nodes += [(other, sign) for other in inputs]
        else:
            return None
    return found


def cosines_in(loss: torch.Tensor) -> set[tuple[int, int]]:
    """Of a loss that is made of cosines alone: how many of their sides have a gradient, and signs.

    1: the loss rises with the cosine, -1: it falls. Empty where it is made of anything else. Keeps
    nothing of the graph. Where there are factors or constants it waits for a device.
    """
    found: set[tuple[int, int]] = set()
    sides: dict[Any, int] = {}  # of cosines; 0: of a distance

    def is_term(node: Any) -> bool:
        inputs = _inputs(node)
        if known := _cosine(node, inputs):
            sides[node] = known
        elif _is_distance(node, inputs):
            sides[node] = 0
        return node in sides

    for node, sign in signed_terms(loss, is_term, _MOST_NODES) or ():
        found.add((sides[node], sign) if sides[node] else (2, -sign))
    return found


# Of a loss that is least where what it compares points one way, whatever that is.
ONE_WAY = {(2, -1)}
# Of one that is least where what is trained points away from all that it is given. That is how a
# similarity to a teacher or a target is lowered that was to be raised.
AWAY = {(1, 1)}
