"""Whether the inputs tell the labels: how alike the labels of rows are that are alike.

Of the first batches some rows and their labels are copied, and once there are enough, each row is
compared with the one nearest to it among the others. Labels that differ as often between
neighbours as between any two rows have little to do with the inputs, or are told by something
finer than a distance; labels that hardly differ could be learned by a model that is able to.

Rows that are the same are no neighbours: a batch that comes again would say nothing. Whether these
have the same label, too, as copies have, is told beside. What is kept are at most 512 rows of 256
values, on the inputs' device, until they are compared. No wait for a device.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations, widest_of

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_ROWS = 512
_MOST_VALUES = 256  # of a row
_FEWEST_ROWS = 96
_LOOKS = 10  # after which fewer rows will do
_MOST_LOOKS = 40
_CLASSES = ("cross_entropy", "nll_loss")
_NUMBERS = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
)


class Told(NamedTuple):
    """What is told once of a training, as facts `loop/<field>`: numbers on the inputs' device."""

    neighbours_rows: torch.Tensor  # that have a neighbour
    neighbours_differ: torch.Tensor  # mean of [a ≠ b], or of (a - b)², over rows and neighbours
    neighbours_any_differ: torch.Tensor  # the same over all pairs of rows
    neighbours_same: torch.Tensor  # pairs of rows that are the same, which are no neighbours
    neighbours_same_labels: torch.Tensor  # those of them whose labels are the same


class Neighbours:
    """One per recording; its calls come from the training's thread."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begins anew, as for another model."""
        self._input: Callable[[], torch.Tensor | None] | None = None
        self._rows: list[torch.Tensor] = []
        self._labels: list[torch.Tensor] = []
        self._count = self._looks = 0
        self._kind = ""
        self._is_over = False

    def given(self, number: int, inputs: torch.Tensor) -> None:
        """The model is called in training; this is its so many-th input."""
        if self._is_over:
            return
        if number > 0:
            self._end()  # what the labels depend on is not in one of them alone
        elif _is_plain(inputs) and inputs.dim() >= 2 and inputs.is_floating_point():
            self._input = weakref.ref(inputs)

    def called_again(self) -> None:
        """The model was called twice before the loss: labels depend on what was given to both."""
        if self._input is not None:
            self._end()

    def labelled(self, name: str, labels: Any) -> Told | None:
        """The loss function `name` was given these for the batch; what is told, once."""
        given, self._input = self._input, None
        rows = None if given is None else given()
        if self._is_over or rows is None or not _is_plain(labels):
            return None
        if not self._takes(name, rows, labels):
            return None
        try:
            return self._look(name, rows, labels)
        except Exception:
            self._end()
            raise

    def _look(self, name: str, rows: torch.Tensor, labels: torch.Tensor) -> Told | None:
        with own_operations():
            self._keep(rows, labels)
            is_enough = self._count >= _MOST_ROWS or (
                self._looks >= _LOOKS and self._count >= _FEWEST_ROWS
            )
            if not is_enough:
                if self._looks >= _MOST_LOOKS:
                    self._end()
                return None
            told = compared(torch.cat(self._rows), torch.cat(self._labels), name in _CLASSES)
        self._end()
        return told

    def _takes(self, name: str, rows: torch.Tensor, labels: torch.Tensor) -> bool:
        if rows.shape[0] < 2 or labels.numel() != rows.shape[0] or labels.device != rows.device:
            return False
        if labels.is_complex() or labels.requires_grad or rows.numel() == rows.shape[0]:
            return False
        if capturing_graph(rows):
            return False
        is_class = name in _CLASSES and labels.dim() == 1 and not labels.is_floating_point()
        is_number = name in _NUMBERS and labels.is_floating_point()
        if not (is_class or is_number):
            return False
        # Another kind of data, or another loss of the same step.
        kind = f"{name} {tuple(rows.shape[1:])} {rows.device}"
        self._kind = self._kind or kind
        return self._kind == kind

    def _keep(self, rows: torch.Tensor, labels: torch.Tensor) -> None:
        room = _MOST_ROWS - self._count
        step = -(-rows.shape[0] // room)
        x = rows.detach()[::step]
        values = x[0].numel()
        if values > _MOST_VALUES:  # picked where they lie: images may be far larger
            places = torch.arange(_MOST_VALUES, device=x.device) * values // _MOST_VALUES
            picked: list[torch.Tensor] = []
            for size in reversed(x.shape[1:]):
                picked.insert(0, places % size)
                places = places // size
            index = (slice(None), *picked)
            x = x[index]
        x = x.flatten(1)
        self._rows.append(x.to(torch.float32, copy=True))
        self._labels.append(labels.detach().reshape(-1)[::step].clone())
        self._count += x.shape[0]
        self._looks += 1

    def _end(self) -> None:
        self.forget()
        self._is_over = True


def _is_plain(tensor: Any) -> bool:
    """Holds values that can be read one by one."""
    return (
        type(tensor) is torch.Tensor
        and tensor.layout is torch.strided
        and not (tensor.is_quantized or tensor.is_meta)
    )


def compared(rows: torch.Tensor, labels: torch.Tensor, are_classes: bool) -> Told:
    """Each row with its nearest other one, by the distance of standardised columns.

    Not finite numbers count as 0. Cost: rows² · columns multiplications, in float64: a row that
    came again is known by its distance, of which TF32 would leave more than there is between some.
    """
    x = torch.nan_to_num(rows, nan=0.0, posinf=0.0, neginf=0.0).to(widest_of(rows))
    x = x - x.mean(0)
    spread = x.square().mean(0).sqrt()
    x = torch.where(spread > 0, x / spread.clamp_min(1e-30), 0.0)
    square = x.square().sum(1)
    distance = square[:, None] + square[None, :] - 2 * (x @ x.T)
    # The same row, also where it came again; rounding leaves a little.
    is_same = distance <= 1e-4 * square.mean()
    distance = distance.masked_fill(is_same, torch.inf)
    distance.fill_diagonal_(torch.inf)
    same = is_same.triu(1)
    same_labels = same & (labels[:, None] == labels[None, :])
    nearest, neighbour = distance.min(1)
    has_one = torch.isfinite(nearest)
    if are_classes:
        known = labels >= 0  # -100 is no label
        differ = (labels != labels[neighbour]).to(torch.float32)
        any_differ = (labels[:, None] != labels[None, :]).to(torch.float32)
        has_one = has_one & known & known[neighbour]
        pairs = known[:, None] & known[None, :]
        any_differ = (any_differ * pairs).sum() / pairs.sum()
    else:
        numbers = torch.nan_to_num(labels.to(torch.float32))
        differ = (numbers - numbers[neighbour]).square()
        any_differ = 2 * (numbers - numbers.mean()).square().mean()
    mean = (differ * has_one).sum() / has_one.sum()
    return Told(has_one.sum(), mean, any_differ, same.sum(), same_labels.sum())
