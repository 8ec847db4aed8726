"""The labels of a loss of classes that is written out, read from its graph.

    loss = (scores.logsumexp(1) - scores.gather(1, labels[:, None])[:, 0]).mean()
    loss = -scores.log_softmax(1)[torch.arange(len(labels)), labels].mean()
    loss = (softplus(score) - score * answer).mean()

Nothing that could be heard is given the labels there. The nodes that pick them keep them. Asked of
losses that are this and nothing else: with a factor for each row, as of a reward, what is picked
may be a choice and no label.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.nodes import SAME_VALUE, next_nodes, saved_by, shape_at

_MOST_NODES = 12
_MEANS = frozenset(
    {"MeanBackward0", "MeanBackward1", "NegBackward0", "SumBackward0", "SumBackward1"}
)
_SHAPED = SAME_VALUE | {"SelectBackward0"}
_SIGNED = 1 << 63  # from here on, PyTorch means numbers below zero


class Picked(NamedTuple):
    """What such a loss compares."""

    scores: torch.Tensor | None  # [rows, classes], or their log-probabilities; None: yes and no
    labels: torch.Tensor  # [rows]: classes, or 0 and 1


def picked(loss: torch.Tensor) -> Picked | None:
    """The scores and labels of a cross-entropy that is written out; None: it is none.

    Keeps nothing of the graph. Labels of yes and no are those in host memory, as they are read.
    """
    node: Any = loss.grad_fn if loss.numel() == 1 else None
    for _ in range(_MOST_NODES):
        if node is None or _is_pick(node):
            break
        after = next_nodes(node)
        is_number = node.name() == "DivBackward0" and shape_at(node, 0) == ()
        if node.name() not in _MEANS and node.name() not in _SHAPED and not is_number:
            break
        node = after[0] if len(after) == 1 else None
    if node is None:
        return None
    if _is_pick(node):
        return _of_log_softmax(node)
    return _of_difference(node) if node.name() == "SubBackward0" else None


def _is_pick(node: Any) -> bool:
    return node.name() in ("GatherBackward0", "IndexBackward0")


def _behind(edge: tuple[Any, int], names: frozenset[str] = _SHAPED) -> tuple[Any, int]:
    """The first edge from there on that is not just another shape of it."""
    for _ in range(_MOST_NODES):
        if edge[0] is None or edge[0].name() not in names:
            break
        edge = edge[0].next_functions[0]
    return edge


def _is_plain(edges: tuple[tuple[Any, int], ...]) -> bool:
    return len(edges) == 2 and edges[0][0] is not None and edges[1][0] is not None


def _logsumexp_of(node: Any) -> torch.Tensor | None:
    """What it was taken of, for each row."""
    scores = saved_by(node, "self")
    along = [each if each < _SIGNED else each - (1 << 64) for each in node._saved_dim]
    is_of_rows = scores is not None and scores.dim() == 2 and along in ([1], [-1])
    return scores if is_of_rows else None


def _of_log_softmax(pick: Any) -> Picked | None:
    source = _behind(pick.next_functions[0], SAME_VALUE)[0]
    if source is None:
        return None
    if source.name() == "LogSoftmaxBackward0":
        scores = saved_by(source, "result")
        return _found(scores, pick) if source._saved_dim % (1 << 64) in (1, (1 << 64) - 1) else None
    edges = source.next_functions
    if source.name() != "SubBackward0" or not _is_plain(edges):
        return None
    total = _behind(edges[1])[0]
    if total is None or total.name() != "LogsumexpBackward0":
        return None
    return _found(_logsumexp_of(total), pick) if total.next_functions[0] == edges[0] else None


def _of_difference(node: Any) -> Picked | None:
    edges = node.next_functions
    if getattr(node, "_saved_alpha", 1) != 1 or not _is_plain(edges):
        return None
    total, own = _behind(edges[0])[0], _behind(edges[1])[0]
    if total is None or own is None:
        return None
    if total.name() == "LogsumexpBackward0" and _is_pick(own):
        is_same = _behind(own.next_functions[0], SAME_VALUE) == total.next_functions[0]
        return _found(_logsumexp_of(total), own) if is_same else None
    if total.name() == "SoftplusBackward0" and own.name() == "MulBackward0":
        return _of_yes_and_no(total, own)
    return None


def _of_yes_and_no(total: Any, own: Any) -> Picked | None:
    """`softplus(score) - score * answer`."""
    edges = own.next_functions
    places = [k for k, (other, _) in enumerate(edges) if other is None]
    if len(edges) != 2 or len(places) != 1 or edges[1 - places[0]] != total.next_functions[0]:
        return None
    if (total._saved_beta, total._saved_threshold) != (1, 20):
        return None
    answers = saved_by(own, "other" if places[0] == 1 else "self")
    if answers is None or not may_read(answers) or answers.numel() != _number(total):
        return None
    with own_operations():
        answers = answers.detach().reshape(-1)
        return Picked(None, answers) if bool(((answers == 0) | (answers == 1)).all()) else None


def _number(node: Any) -> int:
    shape = shape_at(node, 0)
    return -1 if shape is None else int(torch.Size(shape).numel())


def _found(scores: torch.Tensor | None, pick: Any) -> Picked | None:
    labels = _labels_of(pick)
    if scores is None or labels is None or scores.dim() != 2 or capturing_graph(labels):
        return None
    if labels.numel() != scores.shape[0] or labels.is_floating_point():
        return None
    with own_operations():
        return Picked(scores.detach(), labels.detach().reshape(-1))


def _labels_of(pick: Any) -> torch.Tensor | None:
    """One column for each row, of what is picked."""
    if pick.name() == "GatherBackward0":
        index = saved_by(pick, "index")
        is_of_rows = index is not None and index.dim() == 2 and index.shape[1] == 1
        return index if is_of_rows and pick._saved_dim in (1, (1 << 64) - 1, -1) else None
    kept = getattr(pick, "_raw_saved_indices", ())
    if len(kept) != 2 or any(getattr(each, "unpack_hook", each) is not None for each in kept):
        return None
    try:
        rows, labels = pick._saved_indices
    except RuntimeError:  # freed, or changed since
        return None
    if rows is None or labels is None or rows.dim() != 1 or rows.shape != labels.shape:
        return None
    if not may_read(rows) or rows.dtype not in (torch.int64, torch.int32):
        return None
    with own_operations():
        every = torch.arange(rows.numel(), dtype=rows.dtype)
        return labels if torch.equal(rows, every) else None
