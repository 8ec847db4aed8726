"""By which measures a program judges a model that says yes or no: by an order, or by its answers.

A model of rare events that is judged by the area under the curve is asked for probabilities, and
need never say yes. The names in the program's text tell: those that it uses, and those in what it
prints.
"""

from __future__ import annotations

import ast
import itertools
import re

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+\d*|[A-Z]+\d*|\d+")
_OF_ORDER = {
    *("auc", "auroc", "roc", "auprc", "gini", "logloss", "ndcg", "brier"),
    # Of risks over time, and of probabilities that are compared with how often it came true.
    *("concordance", "cindex", "ece", "deviance"),
}
_PAIRS_OF_ORDER = {
    *(("average", "precision"), ("c", "index"), ("c", "statistic")),
    *(("calibration", "error"), ("calibration", "curve"), ("reliability", "diagram")),
}
_OF_ANSWERS = {
    *("accuracy", "acc", "recall", "f1", "fbeta", "dice", "iou", "mcc", "kappa", "confusion"),
    *("sensitivity", "specificity", "top1", "topk"),
}
_NOT_MEASURED = {"matmul", "mixed", "double", "single", "half", "full", "float32", "bf16"}


def _words_in(name: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(name)]


def _pairs(words: list[str]) -> set[tuple[str, str]]:
    return set(itertools.pairwise(words))


def _is_of_order(words: list[str]) -> bool:
    is_curve = words[:3] == ["precision", "recall", "curve"]
    is_area = any(word.endswith(("auc", "auroc")) for word in words)
    return (
        is_curve
        or is_area
        or not _OF_ORDER.isdisjoint(words)
        or not _PAIRS_OF_ORDER.isdisjoint(_pairs(words))
    )


def _is_of_answers(words: list[str]) -> bool:
    if words[:3] == ["precision", "recall", "curve"]:
        return False
    if not _OF_ANSWERS.isdisjoint(words) or ("hit", "rate") in _pairs(words):
        return True
    is_average = ("average", "precision") in _pairs(words)
    return "precision" in words and not is_average and _NOT_MEASURED.isdisjoint(words)


def _names(tree: ast.Module) -> set[str]:
    """Names that are used or made, and texts but for docstrings."""
    texts = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.alias)):
            found.add(node.name)
        elif isinstance(node, ast.Constant) and id(node) not in texts:
            found.update([node.value] if isinstance(node.value, str) else [])
    return found


def judges_order(tree: ast.Module) -> bool:
    """Whether a program names measures of an order or of probabilities, and none of answers.

    A log loss counts where it is imported by that name: a function of it may well log the loss.
    """
    words = [_words_in(name) for name in _names(tree)]
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    is_of_order = "log_loss" in imported or any(map(_is_of_order, words))
    return is_of_order and not any(map(_is_of_answers, words))
