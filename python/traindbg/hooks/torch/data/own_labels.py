"""How well what a model predicts for a picture fits its own mask, beside that of another picture.

    for frame, mask in zip(sorted(frames), sorted(masks)):    # frame_10, frame_2; 0002, 0010

Where pictures are trained with the masks of other ones, a model learns the mean of all masks: its
loss falls well below that of one number for all pixels, and nothing in it belongs to the picture.
Then the loss is as large with the mask of another picture of the batch. Asked of losses that
compare classes, or yes and no, with a mask for each picture: of a few pictures, and of some pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.data.loaders import OF_TWO

if TYPE_CHECKING:
    from collections.abc import Mapping

_FEWEST_PICTURES, _MOST_PICTURES = 4, 16
_MOST_VALUES = 1 << 18  # scores that are looked at, in all
_FEWEST_PIXELS = 64  # of a picture
_LEAST_UNLIKE = 0.01  # share of the pixels that are another class in the other picture
# Of the loss of a model that knows how frequent each class is: what is below has learned much,
# whatever the pictures of a batch have in common.
_LEARNED = 0.4
_IGNORED = -100  # by a cross-entropy that is not told another class
_OF_CLASSES = "cross_entropy"
_WEIGHTS = ("weight", "pos_weight")


def _some(values: torch.Tensor, scores: int) -> torch.Tensor:
    """Of a few pictures, some pixels of all over; `scores`: of each pixel, that go with them."""
    values = values.detach()[:_MOST_PICTURES]
    height, width = values.shape[-2:]
    all_of_them = values.shape[0] * height * width * scores
    step = 1
    while all_of_them > _MOST_VALUES * step * step:
        step += 1
    return values[..., ::step, ::step]


# By operations: a call of a loss function is heard, as one of the training's would be.


def _of_probabilities(given: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    yes, no = given.log().clamp(min=-100), (1 - given).log().clamp(min=-100)
    return -(wanted * yes + (1 - wanted) * no).mean()


def _of_scores(given: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    return (given.clamp(min=0) - given * wanted + (-given.abs()).exp().log1p()).mean()


def _of_classes(given: torch.Tensor, wanted: torch.Tensor, is_known: torch.Tensor) -> torch.Tensor:
    """Of scores [pictures, classes, height, width]."""
    of_class = given.gather(1, (wanted * is_known).unsqueeze(1)).squeeze(1)
    return ((given.logsumexp(1) - of_class) * is_known).sum() / is_known.sum()


def _entropy(shares: torch.Tensor) -> torch.Tensor:
    return -torch.special.xlogy(shares, shares).sum()


def share_of_others(
    name: str, predicted: Any, labels: Any, settings: Mapping[str, Any], rows: int
) -> torch.Tensor | None:
    """The loss with a picture's own mask, as a share of that with the mask of another one.

    Of a model that has learned much, as a share of the loss of one that only knows how frequent
    each class is, which is less than `_LEARNED`.

    Args:
        name: of the loss function.
        predicted: scores [pictures, classes, height, width], or, of yes and no, the masks' shape.
        labels: classes [pictures, height, width], or 0 and 1 [pictures, ..., height, width].
        settings: the keyword arguments of the loss function. With weights nothing is compared.
        rows: how many pictures the model was given.

    Returns:
        One value on the labels' device, not a number where the masks are alike or no masks. None
        where the loss compares something else.
    """
    if type(predicted) is not torch.Tensor or type(labels) is not torch.Tensor:
        return None
    if labels.dim() < 3 or labels.device != predicted.device or labels.is_meta:
        return None
    pictures, pixels = labels.shape[0], labels.shape[-1] * labels.shape[-2]
    if pictures != rows or pictures < _FEWEST_PICTURES or pixels < _FEWEST_PIXELS:
        return None
    if any(settings.get(word) is not None for word in _WEIGHTS) or capturing_graph(labels):
        return None
    if predicted.is_complex() or labels.is_complex():
        return None
    half = min(pictures, _MOST_PICTURES) // 2  # far away: pictures of a film are like the next one
    if name == _OF_CLASSES:
        is_plain = labels.dim() == 3 and predicted.dim() == 4 and not labels.is_floating_point()
        if not is_plain or predicted.shape[:1] + predicted.shape[2:] != labels.shape:
            return None
        with own_operations():
            classes = predicted.shape[1]
            given, own = _some(predicted, classes).float(), _some(labels, classes).long()
            ignored = settings.get("ignore_index", _IGNORED)
            known = (own >= 0) & (own < classes) & (own != ignored)
            others, others_known = own.roll(half, 0), known.roll(half, 0)
            counts = torch.zeros(classes, dtype=torch.float32, device=own.device)
            counts.scatter_add_(0, (own * known).flatten(), known.flatten().float())
            loss = _of_classes(given, own, known)
            with_others = _of_classes(given, others, others_known)
            constant = _entropy(counts / counts.sum())
            return _share(loss, with_others, constant, (own != others) & known & others_known)
    if name not in OF_TWO or predicted.shape != labels.shape:
        return None
    with own_operations():
        given, own = _some(predicted, 1).float(), _some(labels, 1).float()
        compare = _of_scores if name.endswith("_with_logits") else _of_probabilities
        others, mean = own.roll(half, 0), own.mean()
        are_masks = ((own == 0) | (own == 1)).all()
        constant = _entropy(torch.stack([mean, 1 - mean]))
        unlike = (own != others) & are_masks
        return _share(compare(given, own), compare(given, others), constant, unlike)


def _share(
    loss: torch.Tensor, with_others: torch.Tensor, constant: torch.Tensor, unlike: torch.Tensor
) -> torch.Tensor:
    share = torch.where(loss < _LEARNED * constant, loss / constant, loss / with_others)
    return torch.where(unlike.float().mean() > _LEAST_UNLIKE, share, torch.nan)
