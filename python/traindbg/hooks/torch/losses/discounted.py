"""Whether a program adds up rewards of which later ones count less: whether it teaches an agent.

    td_target = rewards + gamma * next_values * (1 - dones)
    R = r + args.gamma * R

The values that such a training is taught are of its own making: they grow while it learns, are of
the size of what can be earned, and rewards that come seldom are far from the rest. No graph and no
loss tells them from a table's targets; the program does, by its names.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DISCOUNT = re.compile("gamma|discount", re.IGNORECASE)
_REWARD = re.compile("reward|(^|_)(rews?|rs?)(_|$)", re.IGNORECASE)
# `r + self.gamma * f(r)` is a layer, too: elsewhere in the program one of these is named.
_GAME = re.compile("reward|episode|terminated|^dones?$", re.IGNORECASE)


def _names_in(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def _is_discount(factor: ast.AST) -> bool:
    """`gamma`, `self.gamma`, `gamma ** steps`."""
    if isinstance(factor, ast.BinOp) and isinstance(factor.op, ast.Pow):
        factor = factor.left
    name = factor.id if isinstance(factor, ast.Name) else getattr(factor, "attr", "")
    return bool(_DISCOUNT.search(name))


def _is_discounted(node: ast.AST) -> bool:
    """A product of which a discount is a factor."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    return any(_is_discount(side) or _is_discounted(side) for side in (node.left, node.right))


def discounts_rewards(tree: ast.Module) -> bool:
    """Whether something of a program's text is a reward and a discounted one."""
    if not any(map(_GAME.search, _names_in(tree))):
        return False
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
            continue
        for one, other in ((node.left, node.right), (node.right, node.left)):
            # `rewards + gamma * values * goes_on - now`: a difference of what is meant.
            is_reward = not _is_discounted(one) and any(map(_REWARD.search, _names_in(one)))
            if is_reward and _is_discounted(other):
                return True
    return False
