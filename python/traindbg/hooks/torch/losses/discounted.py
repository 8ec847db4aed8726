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


def _names_in(node: ast.AST) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.Attribute):
            yield each.attr


def _is_discounted(node: ast.AST) -> bool:
    """A product with a discount in it."""
    is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)
    return is_product and any(map(_DISCOUNT.search, _names_in(node)))


def discounts_rewards(tree: ast.Module) -> bool:
    """Whether something of a program's text is a reward and a discounted one."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.Add, ast.Sub)):
            continue
        for one, other in ((node.left, node.right), (node.right, node.left)):
            # `rewards + gamma * values * goes_on - now`: a difference of what is meant.
            is_reward = not _is_discounted(one) and any(map(_REWARD.search, _names_in(one)))
            if is_reward and _is_discounted(other):
                return True
    return False
