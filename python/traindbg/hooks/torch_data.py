"""How much data a training has beside the batch that it is given: facts that tell a batch from all.

Only sizes are asked for; nothing of a loader or a tensor is kept.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch_guard import guarded

if TYPE_CHECKING:
    from collections.abc import Callable


class LoaderSizes:
    """The most batches of a `DataLoader` that was asked for them where gradients are made."""

    def __init__(self) -> None:
        self.batches = 0

    def begins(self, loader: Any) -> None:
        """A loader is asked for its batches."""
        if isinstance(getattr(loader, "dataset", None), torch.utils.data.IterableDataset):
            return  # its length, if there is one, may be anything
        self.batches = max(self.batches, len(loader))


sizes = LoaderSizes()


def listening_iter(
    is_heard: Callable[[], bool], original: Callable[..., Any]
) -> Callable[..., Any]:
    """`DataLoader.__iter__`, of whose loader the size is noted where `is_heard()`."""

    @functools.wraps(original)
    def __iter__(self: Any) -> Any:  # noqa: N807
        if is_heard():
            guarded("loaders", sizes.begins, self)
        return original(self)

    return __iter__


def batches_in_storage(tensor: torch.Tensor) -> float:
    """How many such tensors the memory holds that this one is a slice of, by its rows: at least 1.

    Rows are counted by the first dimension's stride, so that some columns of a table count as all
    of it. 1 also where it cannot be told.
    """
    if type(tensor) is not torch.Tensor or tensor.dim() == 0 or tensor.layout != torch.strided:
        return 1.0
    rows, stride = tensor.shape[0], tensor.stride(0)
    if rows == 0 or stride <= 0 or tensor.is_conj() or tensor.is_quantized:
        return 1.0
    elements = tensor.untyped_storage().nbytes() // tensor.element_size()
    return max(1.0, elements / (stride * rows))
