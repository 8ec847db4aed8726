"""Whether a loss is made of what its loss functions compare with each other, and of nothing else.

`mse_loss(a, b)` of two outputs that both have a gradient is a model compared to itself, unless a
target takes part elsewhere: `((y - target) ** 2).mean()` calls no loss function that could be
heard. From the loss back to the layers its graph is looked through: terms that are written out,
such as the variance and the covariance of VICReg, may begin with what is compared, and nothing but
numbers may take part in them, and what leaves out the diagonal of a square matrix, as that of a
covariance. Whatever is not known to be without data counts as if it had some.

Two tensors of the same samples are compared to keep a curve smooth, or for a symmetry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.base.later import may_read
from traindbg.hooks.torch.base.nodes import saved_by, shape_at

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_NODES = 256
_MOST_OF_MASK = 1024  # rows and columns of one that is looked through
_COMPARES = frozenset({"HuberLossBackward0", "MseLossBackward0", "SmoothL1LossBackward0"})
_LEAF = "torch::autograd::AccumulateGrad"
_MATRIX_PRODUCTS = frozenset({"BmmBackward0", "MmBackward0"})
_TURNED = frozenset({"PermuteBackward0", "TBackward0", "TransposeBackward0"})
# What lies between a loss and what it is made of. Numbers that take part in it are no data.
_PASSED = (
    _COMPARES
    | _MATRIX_PRODUCTS
    | _TURNED
    | {
        "AbsBackward0", "AddBackward0", "AliasBackward0", "ClampBackward1", "ClampMinBackward0",
        "CloneBackward0", "DiagEmbedBackward0", "DiagonalBackward0", "DiagonalBackward0_copy",
        "DiagonalBackward1", "DivBackward0", "ExpandBackward0", "LinalgVectorNormBackward0",
        "MaximumBackward0", "MeanBackward0", "MeanBackward1", "MulBackward0", "NegBackward0",
        "PowBackward0", "ReluBackward0", "ReshapeAliasBackward0", "RsubBackward1",
        "SelectBackward0", "SliceBackward0", "SoftplusBackward0", "SplitBackward0",
        "SqrtBackward0", "SqueezeBackward0", "SqueezeBackward1", "SqueezeBackward2",
        "StackBackward0", "StdBackward0", "StdMeanBackward0", "SubBackward0", "SumBackward0",
        "SumBackward1", "ToCopyBackward0", "TraceBackward0", "TrilBackward0", "TriuBackward0",
        "UnbindBackward0", "UnsafeViewBackward0", "UnsqueezeBackward0", "VarBackward0",
        "VarMeanBackward0", "ViewBackward0",
        "torch::autograd::CopySlices",  # into a part of it, as by fill_diagonal_
    }
)  # fmt: skip
# They are given places, or a mask, as well, which the data may say.
_PICKS = frozenset(
    {
        "GatherBackward0", "IndexBackward0", "IndexSelectBackward0", "MaskedFillBackward0",
        "MaskedSelectBackward0", "TakeBackward0", "WhereBackward0",
    }
)  # fmt: skip
_KEPT_FROM_ZERO = frozenset({"DivBackward0", "SqrtBackward0"})  # by a number that is added


def _is_number(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and tensor.dim() == 0


def _is_of_diagonal(mask: torch.Tensor | None) -> bool:
    """Whether it tells the diagonal of a square matrix from the rest of it, and nothing else."""
    if mask is None or mask.dim() != 2 or not 1 < mask.shape[0] <= _MOST_OF_MASK:
        return False
    if mask.shape[0] != mask.shape[1] or not may_read(mask):
        return False
    with own_operations():
        eye = torch.eye(len(mask), dtype=torch.bool, device=mask.device)
        of_it = mask.detach()
        is_it = of_it != 0
        is_plain = mask.dtype == torch.bool or torch.equal(of_it, is_it.to(mask.dtype))
        return bool(is_plain and (torch.equal(is_it, eye) or torch.equal(is_it, ~eye)))


def _mask_of(node: Any) -> torch.Tensor | None:
    """What one of `_PICKS` picks by; None: by something else than one mask."""
    if node.name() != "IndexBackward0":
        return saved_by(node, "mask")
    raw = getattr(node, "_raw_saved_indices", None)
    if not isinstance(raw, tuple) or len(raw) != 1:
        return None
    if getattr(raw[0], "unpack_hook", raw) is not None:  # somebody's, as in `saved_by`
        return None
    try:
        found: torch.Tensor | None = node._saved_indices[0]
    except RuntimeError:  # a backward pass has freed it, or it was changed since
        return None
    return found if found is not None and found.dtype == torch.bool else None


def _is_compared(node: Any, inputs: list[Any]) -> bool:
    """Whether a node is a loss function's that is about differences."""
    if node.name() == "AbsBackward0":  # l1_loss
        return inputs[0] is not None and inputs[0].name() == "SubBackward0"
    return node.name() in _COMPARES


def _is_layer(inputs: list[Any]) -> bool:
    """Whether a matrix product of these has a leaf for its matrix."""
    turned = [
        node.next_functions[0][0] for node in inputs if node is not None and node.name() in _TURNED
    ]
    return any(node is not None and node.name() == _LEAF for node in [*inputs, *turned])


def _inputs(node: Any) -> list[Any] | None:
    """What a node is made of, if numbers are all that takes part beside; None: it may be data."""
    name = node.name()
    inputs = [other for other, _ in node.next_functions]
    given = [other for other in inputs if other is not None]
    if name in _KEPT_FROM_ZERO and inputs[-1] is not None:
        parts = [part for part, _ in inputs[-1].next_functions if part is not None]
        if inputs[-1].name() == "AddBackward0" and len(parts) == 1:
            given[-1] = parts[0]
    if len(given) == len(inputs):
        return given
    if name in ("MaximumBackward0", "MulBackward0"):
        beside = saved_by(node, "self" if inputs[0] is None else "other")
        is_known = _is_number(beside) or (name == "MulBackward0" and _is_of_diagonal(beside))
        return given if is_known else None
    if name == "DivBackward0":
        is_by_number = inputs[0] is not None and _is_number(saved_by(node, "other"))
        return given if is_by_number else None
    return given if name == "AddBackward0" and shape_at(node, 0) == () else None  # 0 + loss


def _begins(nodes: Iterable[Any]) -> tuple[set[Any], list[Any]] | None:
    """The nodes that a loss is made of, and those that compare; None: it may be made of data."""
    waiting = list(nodes)
    seen: set[Any] = set()
    begins: set[Any] = set()
    compare: list[Any] = []
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        name = node.name()
        if len(seen) > _MOST_NODES:
            return None
        every = [other for other, _ in node.next_functions]
        if name in _PICKS:
            if len(every) != 1 or not _is_of_diagonal(_mask_of(node)):
                return None
            waiting += every
            continue
        if name not in _PASSED or (name in _MATRIX_PRODUCTS and _is_layer(every)):
            if name != _LEAF:
                begins.add(node)
            continue
        inputs = _inputs(node)
        if inputs is None:
            return None
        if _is_compared(node, inputs):
            compare.append(node)
        waiting += inputs
    return begins, compare


def is_made_of_what_it_compares(loss: torch.Tensor) -> bool:
    """Reads the graph of `loss`, and keeps nothing of it."""
    found = None if loss.grad_fn is None else _begins([loss.grad_fn])
    if found is None or not found[1]:
        return False
    compared = _begins(found[1])
    return compared is not None and found[0] == compared[0]


def _rows(tensor: torch.Tensor) -> tuple[int, int]:
    """The first and the last element in memory."""
    first = tensor.storage_offset()
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    return first, first + sum((size - 1) * step for size, step in steps)


def are_of_the_same_samples(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are views of one, and not of different rows of it."""
    base = one if one._base is None else one._base
    if base is not (other if other._base is None else other._base):
        return False
    if one.layout != torch.strided or other.layout != torch.strided:
        return False
    (first, last), (other_first, other_last) = _rows(one), _rows(other)
    return first <= other_last and other_first <= last
