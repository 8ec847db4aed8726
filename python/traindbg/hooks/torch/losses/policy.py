"""Whether a policy is taught to do less of what it was rewarded for.

    loss = (log_probs * advantages).mean()                  # the minus sign is missing

In the graph the log-probability of what was chosen, times numbers, is minimised. Whether the
numbers are rewards, which is wrong, or costs, which is right, the numbers do not say; the program
does, by their name. Its text is read only where the graph shows such a product, and nothing is told
unless each product of a log-probability in the file is with something that is called a reward, an
advantage or a return and was not turned round where it was made.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

from traindbg.hooks.torch.base.nodes import edges_of, next_nodes
from traindbg.hooks.torch.losses.densities import is_density
from traindbg.hooks.torch.losses.terms import Terms, is_passed_on, number_of_factor, terms_of
from traindbg.hooks.torch.text.program import text_says

if TYPE_CHECKING:
    import torch

_MOST_NODES = 128
_FEWEST_NUMBERS = 4  # that differ, with which log-probabilities are multiplied one by one
_PICKS = ("GatherBackward0", "IndexBackward0")
_CUTS = ("ClampBackward0", "ClampBackward1")
_LOG = re.compile(r"log_?p|log_?prob|log_?lik|^lps?$|(^|_)ratios?(_|$)", re.IGNORECASE)
_REWARD = re.compile(r"(^|_)(adv|advantages?|rewards?|returns?|rets?|gaes?|gains?)(_|$)|^[RGA]$")
_LEVEL = re.compile("mean|std|base|value|average")
# Methods that leave a number what it is.
_LEAVES = ("detach", "float", "to", "unsqueeze", "squeeze", "view", "reshape", "expand", "flatten")


def _first(node: Any) -> Any:
    edges = edges_of(node)
    return edges[0] if edges else None


def _is_log_of_density(node: Any) -> bool:
    """Whether it is the log-density of a normal distribution, written by hand as PyTorch does."""
    for name in ("SubBackward0", "SubBackward0", "DivBackward0", "NegBackward0", "PowBackward0"):
        if node is None or node.name() != name:
            return False
        node = _first(node)
    return node is not None and node.name() == "SubBackward0"


def _is_log_of_choice(node: Any) -> bool:
    """Whether it is a log-probability of one of several classes, or of a value, or rises with it.

    With it rises what it is to what it was: exp(log_prob - before), cut or not.
    """
    for _ in range(_MOST_NODES):
        if node is None:
            return False
        name = node.name()
        if name in _PICKS:
            behind = _first(node)
            while behind is not None and is_passed_on(behind):
                behind = _first(behind)
            if behind is None:
                return False
            if behind.name() == "LogSoftmaxBackward0":
                return True
            normalised = [other.name() for other in next_nodes(behind)]
            return behind.name() == "SubBackward0" and "LogsumexpBackward0" in normalised
        if name == "ExpBackward0":
            node = _first(node)
            if node is None or node.name() != "SubBackward0":
                return False
        elif is_density(node) or _is_log_of_density(node):
            return True
        elif not is_passed_on(node) and name not in _CUTS:
            return False
        node = _first(node)
    return False


def _is_weighed_choice(node: Any) -> bool:
    """Whether it is the log-probability of a choice, times data or a number."""
    if node.name() != "MulBackward0":
        return False
    after = next_nodes(node)
    return len(after) == 1 and _is_log_of_choice(after[0])


def _is_weighed_choice_or_minus_that(node: Any) -> bool:
    if node.name() != "MulBackward0":
        return False
    after = next_nodes(node)
    while len(after) == 1 and after[0].name() == "NegBackward0":
        after = next_nodes(after[0])
    return len(after) == 1 and _is_log_of_choice(after[0])


def has_policy(root: torch.Tensor) -> bool:
    """Whether a part of a loss are log-probabilities of choices, or minus these, times data."""
    if root.grad_fn is None:
        return False
    return bool(_signs_of_data(terms_of(root.grad_fn, _is_weighed_choice_or_minus_that)))


def _signs_of_data(terms: Terms | None) -> list[int]:
    """The signs of terms that are times data.

    A single number may be a constant; where each step of an episode has another one, it is none.
    """
    if terms is None:
        return []
    numbers = [number_of_factor(node) for node, _ in terms.signs]
    differ = len({number for number in numbers if number is not None}) >= _FEWEST_NUMBERS
    return [
        sign
        for (_, sign), number in zip(terms.signs, numbers, strict=True)
        if number is None or differ
    ]


def lowers_chosen(root: torch.Tensor) -> bool:
    """Whether log-probabilities of choices, times data, are a part of what is minimised."""
    if root.grad_fn is None:
        return False
    signs = _signs_of_data(terms_of(root.grad_fn, _is_weighed_choice))
    return bool(signs) and min(signs) > 0


def _names(node: ast.AST) -> set[str]:
    return {
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, (ast.Name, ast.Attribute))
    }


def _plain_name(node: ast.expr) -> str:
    """Of a variable or an attribute, an element of it or its copy; empty for anything else."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _LEAVES
        ):
            node = node.func.value
        else:
            break
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_negative(part: ast.AST) -> bool:
    is_minus = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub)
    return is_minus and isinstance(part.operand, ast.Constant)  # type: ignore[attr-defined]


def _is_turned(part: ast.AST) -> bool:
    """Whether it is minus a reward, or something less a reward that is no mean or baseline.

    Or a product with a negative number, or a call of `neg`.
    """
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Mult):
        return any(map(_is_negative, (part.left, part.right)))
    if isinstance(part, ast.Call):
        return bool(_names(part.func) & {"neg", "neg_", "negative"})
    if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub):
        return any(map(_REWARD.search, _names(part)))
    if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub):
        names = _names(part.right)
        return any(map(_REWARD.search, names)) and not any(map(_LEVEL.search, names))
    return False


def _turned_round(tree: ast.Module) -> set[str]:
    """Names that are assigned something of that kind."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or node.value is None:
            continue
        is_scaled = isinstance(node, ast.AugAssign) and _is_negative(node.value)
        if is_scaled or any(map(_is_turned, ast.walk(node.value))):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update(map(_plain_name, targets))
    return found


def _is_of_logs(part: ast.AST) -> bool:
    """Whether it is a product with a log-probability."""
    return (
        isinstance(part, ast.BinOp)
        and isinstance(part.op, ast.Mult)
        and not any(isinstance(side, ast.Constant) for side in (part.left, part.right))
        and any(_LOG.search(name) for side in (part.left, part.right) for name in _names(side))
    )


def says_rewards(tree: ast.Module) -> bool:
    """Whether a program multiplies log-probabilities with what it calls rewards alone."""
    turned = _turned_round(tree)
    is_any = False
    for node in ast.walk(tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        for side, other in ((node.left, node.right), (node.right, node.left)):
            if not any(_LOG.search(name) for name in _names(side)):
                continue
            # The sign of a factor of such a product is in the graph.
            if isinstance(other, ast.Constant) or any(map(_is_of_logs, ast.walk(side))):
                continue
            name = _plain_name(other)
            if not _REWARD.search(name) or name in turned:
                return False
            is_any = True
    return is_any


def is_lowered(root: torch.Tensor) -> bool:
    """Of a loss whose backward pass begins, in the program's own thread."""
    if not lowers_chosen(root):
        return False
    return text_says(says_rewards)
