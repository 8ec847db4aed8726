"""What each class counts in a loss of pixels or positions, and how often it is their label.

    loss = F.cross_entropy(scores, masks, weight=counts / counts.sum())  # their inverse was meant

Classes are not counted there as they are where each sample has one label: there are many, next to
each other, and alike. But weights are compared with how frequent the classes are: both are read
from the graph of the loss, at the first steps. Nothing is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.nodes import saved_by
from traindbg.hooks.torch.data.own_tokens import likelihood_of

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.tensors import Tensors

_MOST_LOOKS = 8  # steps
_MOST_CLASSES = 64
_MOST_LABELS = 1 << 16  # of a batch that are counted


class Weighed(NamedTuple):
    """Of each class."""

    weights: torch.Tensor
    labels: torch.Tensor  # how many of those that were counted


class DenseWeights:
    """Tells of the first steps of a recording. One thread."""

    def __init__(self, tensors: Tensors) -> None:
        self._tensors = tensors
        self._looks = 0

    def backward_begins(self, root: torch.Tensor) -> None:
        if self._looks >= _MOST_LOOKS:
            return
        self._looks += 1
        found = weighed(root)
        if found is None:
            return
        for fact, values in (("dense_weight", found.weights), ("dense_labels", found.labels)):
            for number, one in enumerate(values.unbind()):
                self._tensors.tell(f"{fact}/{number}", one, always=True)


def weighed(root: torch.Tensor) -> Weighed | None:
    """Of the loss that is lowered, before its backward pass. None: it has no such weights."""
    loss = likelihood_of(root)
    if loss is None or loss.name() != "NllLoss2DBackward0":
        return None
    weight, target = saved_by(loss, "weight"), saved_by(loss, "target")
    if weight is None or target is None or weight.device != target.device:
        return None
    classes = weight.numel()
    if not 2 <= classes <= _MOST_CLASSES or target.numel() == 0 or capturing_graph(target):
        return None
    with own_operations():
        labels = target.reshape(-1)
        # An odd number of places on goes through all columns of a picture.
        labels = labels[:: labels.numel() // _MOST_LABELS | 1]
        each = torch.arange(classes, device=labels.device)
        is_one = labels[:, None] == each
        ignored = getattr(loss, "_saved_ignore_index", classes)
        if 0 <= ignored < classes:  # it is padding, say, and no class
            is_one = is_one & (each != ignored)
        return Weighed(weight.detach().to(torch.float32), is_one.sum(0).to(torch.float32))
