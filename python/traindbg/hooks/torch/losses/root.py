"""What backward was called on: which loss function's value, times what.

A loss function leaves a mark at the node of its value (`mark_loss`); `root_of` looks for it from
the tensor whose backward pass begins. No node is kept.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import torch
from torch import nn

from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.nodes import SAME_VALUE, is_leaf, next_nodes, number_in, saved_by
from traindbg.hooks.torch.base.sources import Line, sources
from traindbg.hooks.torch.data.hazards import is_log_of_probability
from traindbg.hooks.torch.losses.densities import is_density
from traindbg.hooks.torch.losses.terms import number_of_factor, terms_of

_MOST_STEPS = 64  # along a chain
_MOST_BACK = 4
_FIRST_LABELS = 64
_KEY = "traindbg"
_KEY_OF_SUM = "traindbg_sum"
DENSITY = "log_prob"  # what `loss_sign` calls a log-probability of torch.distributions

# Losses that are zero or more, whatever they are given of the right kind.
_NEVER_NEGATIVE = frozenset(
    {
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
        "cosine_embedding_loss",
        "cross_entropy",
        "hinge_embedding_loss",
        "huber_loss",
        "l1_loss",
        "margin_ranking_loss",
        "mse_loss",
        "multi_margin_loss",
        "multilabel_margin_loss",
        "multilabel_soft_margin_loss",
        "smooth_l1_loss",
        "soft_margin_loss",
        "triplet_margin_loss",
        "triplet_margin_with_distance_loss",
    }
)

_MEANS = frozenset({"MeanBackward0", "MeanBackward1", "SumBackward0", "SumBackward1"})
_PICKS = frozenset({"GatherBackward0", "IndexBackward0", "SelectBackward0"})
_BY_NUMBER = frozenset({"DivBackward0", "MulBackward0"})
_MOST_OF_MASK = 1 << 16
_MOST_NEAR = 128  # nodes between a loss and its last layer
_ROUNDING = 1e-5
_NO_CLASS = -100  # as losses of classes leave it out
_sums = itertools.count(1)


class _Mark(NamedTuple):
    """What is known of a loss function's value; left in the metadata of its node."""

    name: str
    number: int  # of the step's losses
    value: float | None  # None: on a device
    is_mean: bool
    labels: int  # differs for other ones; 0: there are none
    summed: int = 0  # how many labels it is of
    line: Line | None = None  # of the program, where it was computed


class Root(NamedTuple):
    """What backward was called on. Known: one loss function's value, or that times a number."""

    is_known: bool = False
    name: str = ""
    number: int = 0
    sign: int = 0  # of the number; 0: not known
    tells_sign: bool = False  # the sign says whether it is made larger or smaller
    is_mean: bool = False
    is_undivided: bool = False  # it is the very value
    labels: int = 0
    line: Line | None = None  # of the program, where the loss was computed


def _metadata(node: Any) -> dict[str, Any]:
    found = getattr(node, "metadata", None)
    return found if isinstance(found, dict) else {}


def mark_loss(
    value: torch.Tensor, name: str, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Leaves at the node of a loss function's value which function that was."""
    node = value.grad_fn
    if node is None or not isinstance(getattr(node, "metadata", None), dict):
        return
    target = args[1] if len(args) > 1 else kwargs.get("target")
    labels = _print_of(target) if isinstance(target, torch.Tensor) and _has_memory(target) else 0
    count = target.numel() if isinstance(target, torch.Tensor) else 0
    known = number_in(value) if may_read(value) else None
    is_mean = kwargs.get("reduction", "mean") in ("mean", "batchmean") and "sum" not in args[2:]
    node.metadata[_KEY] = _Mark(name, number, known, is_mean, labels, count, sources.here())


def mark_sum(name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """The same of a classification's sum over its labels, which is seen as their mean elsewhere."""
    target = args[1] if len(args) > 1 else kwargs.get("target")
    node: Any = getattr(value, "grad_fn", None)
    if not isinstance(target, torch.Tensor) or not _has_memory(target) or not may_read(value):
        return
    if node is None or not isinstance(getattr(node, "metadata", None), dict):
        return
    ignored = kwargs.get("ignore_index")
    with own_operations():
        counted = target.detach() != (_NO_CLASS if ignored is None else ignored)
        count = number_in(counted.sum())
    node.metadata[_KEY_OF_SUM] = _Mark(
        name,
        next(_sums),
        number_in(value),
        False,
        _print_of(target),
        int(count),
        sources.here(),
    )


def value_marked(node: Any) -> float | None:
    """What the loss function gave whose mark a node bears. None: it bears none, or on a device."""
    mark = _metadata(node).get(_KEY)
    return mark.value if isinstance(mark, _Mark) else None


def _print_of(target: torch.Tensor) -> int:
    """Of the first labels; on a device, where they lie: reading them would wait."""
    if not may_read(target):
        return int(target.data_ptr())
    with own_operations():
        return hash(tuple(target.detach().reshape(-1)[:_FIRST_LABELS].tolist()))


def _has_memory(tensor: torch.Tensor) -> bool:
    return type(tensor) in (torch.Tensor, nn.Parameter) and tensor.layout == torch.strided


def _elements(node: Any) -> int:
    """Of what a node computed; -1 where PyTorch does not tell."""
    made = getattr(node, "_input_metadata", None)
    return int(torch.Size(made[0].shape).numel()) if made else -1


def root_of(root: torch.Tensor, is_scaled: bool) -> Root | None:
    """Which loss function's value `root` is, if it is no more than that times a number.

    `is_scaled`: it was multiplied by a GradScaler, which does not count.
    """
    node: Any = root.grad_fn
    if node is None or root.numel() != 1:
        return None
    if is_scaled and node.name() == "MulBackward0" and len(next_nodes(node)) == 1:
        node = next_nodes(node)[0]
    start = node  # behind the scaler, whose factor is above zero
    sign, is_undivided, is_sign_unknown, picks = 1, True, False, False
    for _ in range(_MOST_STEPS):
        mark = _metadata(node).get(_KEY)
        if isinstance(mark, _Mark):
            if not is_undivided:
                sign = _sign_of(root, mark)
            is_below = mark.value is not None and mark.value < 0
            is_never = mark.name in _NEVER_NEGATIVE and not is_below
            # Divided by a number that is 1 it is the very value, too.
            is_whole = is_undivided or _is_whole(root, mark)
            same = is_whole and sign == 1
            is_mean = mark.is_mean
            if not same and not is_mean and _is_own_mean(root, mark):
                same = is_mean = True
            return Root(
                True, mark.name, mark.number, sign, is_never, is_mean, same, mark.labels, mark.line
            )
        total = _metadata(node).get(_KEY_OF_SUM)
        if isinstance(total, _Mark) and _is_own_mean(root, total):
            return Root(
                True, total.name, total.number, 1, False, True, True, total.labels, total.line
            )
        name = node.name()
        after = next_nodes(node)
        if (name == "LogSoftmaxBackward0" or _is_written_log_softmax(node)) and picks:
            # Log-probabilities of labels by hand: none is above zero.
            if not is_undivided:
                sign = 0 if not may_read(root) else (1 if number_in(root) < 0 else -1)
            return Root(True, "log_softmax", 0, -sign, True, False, False, 0)
        # Of a choice, times what may be a reward or a cost, or of some picks, it tells nothing.
        if is_density(node):
            is_told = not (is_sign_unknown or picks)
            return Root(True, DENSITY, 0, -sign, True) if is_told else None
        is_logarithm = name == "LogSigmoidBackward0" or is_log_of_probability(node)
        if is_logarithm or is_log_of_share(node):
            if not is_undivided:
                sign = 0 if not may_read(root) else (1 if number_in(root) < 0 else -1)
            # Which of these can be -inf is told by another name.
            word = "log_of_probability" if is_log_of_probability(node) else "log_probability"
            return Root(True, word, 0, -sign, True, False, False, 0)
        if len(after) != 1:
            return _minus_several(start) or _penalised_log(start) or _sum_of_means(start)
        if name == "MulBackward0" and _elements(node) > 1 and is_log_of_share(after[0]):
            if not _is_mask(node):
                return None
        elif name == "NegBackward0":
            sign = -sign
        elif name in _BY_NUMBER:
            if _elements(node) != 1:
                return None
            is_undivided = False
            factor = number_of_factor(node) or 0.0
            # What a density is multiplied by may be a reward; 1 is a weight that changes nothing.
            if factor != 1 if name == "MulBackward0" else factor <= 0:
                is_sign_unknown = True
        elif name in _PICKS:
            picks = True
        elif name == "MaskedSelectBackward0" and is_log_of_share(after[0]):
            pass  # of the events, say
        elif name not in SAME_VALUE and name not in _MEANS:
            return None
        node = after[0]
    return None


def head_of(root: torch.Tensor) -> int:
    """The id of the parameter that is nearest to `root`, of its last layer; 0: none is near."""
    seen: set[Any] = set()
    near = [root.grad_fn]
    for _ in range(_MOST_STEPS):
        further = []
        for node in near:
            if node is None or node in seen:
                continue
            if is_leaf(node):
                return id(node.variable)
            seen.add(node)
            further += next_nodes(node)
        if not further or len(seen) > _MOST_NEAR:
            break
        near = further
    return 0


def _minus_several(root: Any) -> Root | None:
    """A sum of values of loss functions that are never negative, each times a negative number."""
    terms = terms_of(root, lambda node: isinstance(_metadata(node).get(_KEY), _Mark))
    if terms is None or not terms.is_all or len(terms.signs) < 2:
        return None
    marks = [_metadata(node)[_KEY] for node, _ in terms.signs]
    for mark, (_, sign) in zip(marks, terms.signs, strict=True):
        # A value below zero: targets that are no probabilities.
        if sign > 0 or mark.name not in _NEVER_NEGATIVE or (mark.value or 0.0) < 0:
            return None
    return Root(True, marks[0].name, marks[0].number, -1, True, False, False, 0)


def _sum_of_means(root: Any) -> Root | None:
    """A sum of values of loss functions that take means, one of them at least as it was returned.

    The others may have weights. Of what of it is made larger or smaller nothing is said.
    """
    marks: list[_Mark] = []
    plain: list[_Mark] = []
    waiting = [(root, True)]
    for _ in range(_MOST_STEPS):
        if not waiting:
            break
        node, is_plain = waiting.pop()
        mark, name, after = _metadata(node).get(_KEY), node.name(), next_nodes(node)
        if isinstance(mark, _Mark):
            marks.append(mark)
            plain += [mark] if is_plain else []
        elif name == "AddBackward0" and len(after) == 2 and getattr(node, "_saved_alpha", 1) == 1:
            waiting += [(each, is_plain) for each in reversed(after)]
        elif name in _BY_NUMBER and len(after) == 1 and (number_of_factor(node) or 0.0) > 0:
            waiting.append((after[0], False))
        elif name in SAME_VALUE and len(after) == 1:
            waiting.append((after[0], is_plain))
        else:
            return None
    if waiting or len(marks) < 2 or not plain or not all(mark.is_mean for mark in marks):
        return None
    name = "+".join(mark.name for mark in marks)
    first = plain[0]
    return Root(True, name, first.number, 1, False, True, True, first.labels, first.line)


def _penalised_log(root: Any) -> Root | None:
    """A sum of log-probabilities and of what is never negative, such as a penalty of the weights.

    As a pairwise ranking loss is written: `-logsigmoid(liked - other).mean() + decay * squares`.
    """

    def is_log(node: Any) -> bool:
        return node.name() == "LogSigmoidBackward0" or is_log_of_probability(node)

    terms = terms_of(root, lambda node: is_log(node) or _is_never_negative(node))
    if terms is None or not terms.is_all:
        return None
    logs = {sign for node, sign in terms.signs if is_log(node)}
    if len(logs) != 1 or any(sign < 0 for node, sign in terms.signs if not is_log(node)):
        return None
    return Root(True, "log_probability", 0, -logs.pop(), True, False, False, 0)


def _is_never_negative(node: Any) -> bool:
    """Squares, absolute values, and norms."""
    if node.name() == "PowBackward0":
        exponent = getattr(node, "_saved_exponent", 1)
        return isinstance(exponent, (int, float)) and exponent % 2 == 0
    return node.name() in ("AbsBackward0", "LinalgVectorNormBackward0", "NormBackward0")


def is_log_of_share(node: Any) -> bool:
    """Whether it is a - log(sum of exp(a) up to there): never above 0.

    So the partial likelihood of Cox and the likelihood of an order are written. `a` is the same
    output of the same node in both.
    """
    if node.name() != "SubBackward0" or getattr(node, "_saved_alpha", 1) != 1:
        return False
    edges = node.next_functions  # with the number of the output that is meant
    if len(edges) != 2 or edges[0][0] is None:
        return False
    behind = edges[1]
    for name in ("LogBackward0", "CumsumBackward0", "ExpBackward0"):
        other = behind[0]
        if other is None:
            return False
        if other.name() == "LogcumsumexpBackward0" and name == "LogBackward0":
            return bool(other.next_functions == (edges[0],))
        if other.name() != name or len(other.next_functions) != 1:
            return False
        behind = other.next_functions[0]
    return bool(behind == edges[0])


def _is_written_log_softmax(node: Any) -> bool:
    """Whether it is a - log(sum of exp(a)), along one dimension.

    `a` is the same output of the same node in both.
    """
    if node.name() != "SubBackward0" or getattr(node, "_saved_alpha", 1) != 1:
        return False
    edges = node.next_functions
    if len(edges) != 2 or edges[0][0] is None:
        return False
    behind = edges[1]
    for _ in range(_MOST_BACK):  # a dimension that is put in
        if behind[0] is None or behind[0].name() not in SAME_VALUE:
            break
        behind = behind[0].next_functions[0]
    if behind[0] is not None and behind[0].name() == "LogsumexpBackward0":
        return bool(behind[0].next_functions[0] == edges[0])
    for name in ("LogBackward0", "SumBackward1", "ExpBackward0"):
        if behind[0] is None or behind[0].name() != name:
            return False
        behind = behind[0].next_functions[0]
    return bool(behind == edges[0])


def _is_mask(node: Any) -> bool:
    """Whether the other factor of a product, which has no graph of its own, is 0 or 1 everywhere.

    Not known where reading it would run somebody's hooks (`saved_by`).
    """
    others = [
        each for each in (saved_by(node, "self"), saved_by(node, "other")) if each is not None
    ]
    if len(others) != 1 or not may_read(others[0]) or others[0].numel() > _MOST_OF_MASK:
        return False
    with own_operations():
        mask = others[0].detach()
        return mask.dtype == torch.bool or bool(((mask == 0) | (mask == 1)).all())


def _is_whole(root: torch.Tensor, mark: _Mark) -> bool:
    value = mark.value
    return value is not None and value != 0 and may_read(root) and number_in(root) == value


def _is_own_mean(root: torch.Tensor, mark: _Mark) -> bool:
    """Whether a sum was divided by the number of its own labels: a mean that is written out."""
    value = mark.value
    if value is None or value == 0 or mark.summed < 2 or not may_read(root):
        return False
    return abs(number_in(root) * mark.summed - value) <= _ROUNDING * abs(value)


def _sign_of(root: torch.Tensor, mark: _Mark) -> int:
    if mark.value is None or mark.value == 0 or not may_read(root):
        return 0
    factor = number_in(root) / mark.value
    return 1 if factor > 0 else -1 if factor < 0 else 0
