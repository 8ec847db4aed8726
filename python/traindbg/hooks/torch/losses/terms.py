"""The sum that a loss is: its terms, each with the sign with which it is counted.

Of a node a factor is read that it saved, where that runs nobody's hooks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from traindbg.hooks.torch.base.nodes import next_nodes, number_in, saved_by

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_NODES = 128
# What was made one of a long list, as of an episode's steps, is alike: so many of it are looked at.
_LONG_LIST, _OF_A_LONG_LIST = 32, 8
# They pass on what they were given, a part of it, sums, means, or the larger or smaller one of it.
_PASSED = frozenset(
    f"{name}Backward{number}"
    for number in (0, 1, 2)
    for name in (
        *("Alias", "Cat", "Clone", "Expand", "Maximum", "Mean", "Minimum", "Permute"),
        *("ReshapeAlias", "Select", "Slice", "Squeeze", "Stack", "Sum", "ToCopy", "Transpose"),
        *("UnsafeView", "Unsqueeze", "View"),
    )
)


class Terms(NamedTuple):
    """What a loss is a sum of."""

    signs: list[tuple[Any, int]]  # nodes that were asked for, each with 1 or -1
    is_all: bool  # there is nothing else in the sum


def is_passed_on(node: Any) -> bool:
    """Whether a node keeps the sign of all that it was given."""
    return node.name() in _PASSED


def number_of_factor(node: Any) -> float | None:
    """By which a node multiplies or divides; None where that is no number, or not known."""
    names = ("other",) if node.name() == "DivBackward0" else ("other", "self")
    kept = [value for name in names if (value := saved_by(node, name)) is not None]
    if len(kept) != 1 or kept[0].numel() != 1 or kept[0].requires_grad:
        return None
    return number_in(kept[0]) if kept[0].is_cpu and not kept[0].is_complex() else None


def terms_of(root: Any, is_term: Callable[[Any], bool]) -> Terms | None:
    """The terms for which `is_term` holds. None: the sum is of too many nodes to tell."""
    signs: list[tuple[Any, int]] = []
    waiting: list[tuple[Any, int]] = [(root, 1)]
    is_all = True
    for _ in range(_MOST_NODES):
        if not waiting:
            return Terms(signs, is_all)
        node, sign = waiting.pop()
        if is_term(node):
            signs.append((node, sign))
            continue
        name, after = node.name(), next_nodes(node)
        if name == "NegBackward0":
            sign = -sign
        elif name in ("MulBackward0", "DivBackward0"):
            number = number_of_factor(node)
            if number is None or len(after) != 1:
                is_all = False
                continue
            sign = -sign if number < 0 else sign
        elif name in ("AddBackward0", "SubBackward0") and len(after) == 2:
            times = getattr(node, "_saved_alpha", None)  # a number; nobody's hook is in the way
            if not isinstance(times, (int, float)):
                is_all = False
                continue
            is_turned = (times < 0) != (name == "SubBackward0")
            waiting += [(after[0], sign), (after[1], -sign if is_turned else sign)]
            continue
        elif name != "AddBackward0" and name not in _PASSED:
            is_all = False
            continue
        if len(after) > _LONG_LIST and name in ("StackBackward0", "CatBackward0"):
            is_all = False
            after = after[:_OF_A_LONG_LIST]
        waiting += [(other, sign) for other in after]
    return None
