"""By which measures a program judges a model that says yes or no: by an order, or by its answers.

A model of rare events that is judged by the area under the curve is asked for probabilities, and
need never say yes. The names in the program's text tell: those that it uses, and those in what it
prints.
"""

from __future__ import annotations

import ast
import re

_OF_ORDER = re.compile(
    r"(^|[^a-z])(auc|auroc|roc|auprc|pr_auc|average_precision|log_?loss|brier|gini|ndcg|calibration)"
    r"([^a-z]|$)|aucscore",
    re.IGNORECASE,
)
_OF_ANSWERS = re.compile(
    r"accuracy|recall|(?<!average_)(?<!average )precision|(^|[^a-z])(f1|fbeta|dice|iou|mcc|kappa)"
    r"([^a-z]|$)|confusion|sensitivity|specificity",
    re.IGNORECASE,
)


def _words(tree: ast.Module) -> set[str]:
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
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.alias, ast.keyword)):
            found.add((node.name if isinstance(node, ast.alias) else node.arg) or "")
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts
        ):
            found.add(node.value)
    return found


def judges_order(tree: ast.Module) -> bool:
    """Whether a program names measures of an order or of probabilities, and none of answers."""
    words = _words(tree)
    return any(map(_OF_ORDER.search, words)) and not any(map(_OF_ANSWERS.search, words))
