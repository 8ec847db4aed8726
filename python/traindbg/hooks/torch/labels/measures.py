"""How well labels are told: those of an evaluation beside the training's, by the same weights."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch

from traindbg.hooks.torch.labels.evidence import OF_CLASSES, OF_TWO

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_MEASURED = 1 << 20  # scores: the first rows do
_FEWEST_NUMBERS = 16  # of a batch, that a line is laid through
# Of the labels' variance: the squared error of numbers that are told well; what the best line may
# leave less of, as a multiple of its own error and beside it.
_TOLD, _AS_LINE, _ROUNDING = 0.6, 1.5, 0.02
# What a unit is off by, as a ratio of slopes, and how well that has to be known.
_OFF, _KNOWN = 0.2, 0.1
_NEARLY_ALL = 0.1  # of the variance: less is left by a line that tells a unit at once
# Of the training's first loss: what is left where much is learned, and by how much worse other
# labels than its own may then be told; before that, as a multiple, at a later look.
_LEARNED, _WORSE, _NEARLY, _LATE_LOOKS = 0.25, 0.2, 1.2, 4
_FAR_BETTER = 0.35  # as a share of the training's


def are_numbers(loss: str) -> bool:
    """Whether a loss compares numbers."""
    return loss not in OF_CLASSES and loss not in OF_TWO


def measure(loss: str, scores: torch.Tensor, target: torch.Tensor) -> float:
    """Smaller, the better they go together: about what the loss is, of functions nobody hears."""
    most = max(1, _MOST_MEASURED * len(scores) // max(scores.numel(), 1))
    scores, target = scores[:most], target[:most]
    if are_numbers(loss):
        return float((scores - target).square().mean())
    if loss in OF_TWO:
        if loss == "binary_cross_entropy":
            scores = scores.clamp(1e-6, 1 - 1e-6).logit()
        return float(
            (scores.clamp_min(0) - scores * target + scores.abs().neg().exp().log1p()).mean()
        )
    logs = scores.log_softmax(1) if loss == "cross_entropy" else scores
    if target.is_floating_point():
        return float(-(target * logs).sum(1).mean())
    is_class = (target >= 0) & (target < scores.shape[1])
    told = logs.gather(1, torch.where(is_class, target, 0).unsqueeze(1)).squeeze(1)
    return float(-(told * is_class).sum() / is_class.sum().clamp_min(1))


class Line(NamedTuple):
    """Of labels by outputs: what is left of the labels' variance, and the best line's slope."""

    error: float  # of the outputs as they are
    of_line: float
    slope: float
    doubt: float  # the slope's standard error, as a share of it

    @property
    def is_of_another_unit(self) -> bool:
        """Nearly all is told, by another slope than 1."""
        return self.of_line < _NEARLY_ALL and abs(self.slope - 1) > _OFF


def line_through(loss: str, scores: torch.Tensor, target: torch.Tensor) -> Line | None:
    """None: these are no numbers, or too few."""
    if not are_numbers(loss) or target.numel() < _FEWEST_NUMBERS:
        return None
    p, t = (each.detach().reshape(-1).to(torch.float64) for each in (scores, target))
    spread = max(float(t.var(correction=0)), 1e-300)
    of_outputs = max(float(p.var(correction=0)), 1e-300)
    slope = float(((p - p.mean()) * (t - t.mean())).mean()) / of_outputs
    of_line = float((t - t.mean() - slope * (p - p.mean())).square().mean()) / spread
    explained = slope * slope * of_outputs / spread
    doubt = math.sqrt(of_line / max(explained, 1e-12) / len(p))
    return Line(float((p - t).square().mean()) / spread, of_line, slope, doubt)


class Told(NamedTuple):
    """How well something is told that may be labels."""

    is_better: bool  # than at first: what a model said before is left behind by one that learns
    measure: float
    line: Line | None  # None: they are no numbers


class Comparison:
    """Of what may be labels with the training's own, look by look."""

    def __init__(self) -> None:
        self._slopes: list[tuple[float, float]] = []  # as a ratio to the training's; doubt

    def is_sure(
        self,
        told: Told,
        measured: float,
        line: Line | None,
        first: float,
        looks: int,
        is_alike: bool,
    ) -> bool:
        """Whether these are told as the training's own.

        Args:
            told: of the evaluation.
            measured: of the training, by the same weights.
            line: of the training, likewise.
            first: `measured` of its first step.
            looks: up to now.
            is_alike: the model computes the same in training and in evaluation.
        """
        return (
            told.is_better
            and _is_told_as(told.measure, measured, first, looks)
            # What is told far better is what another model says of the rows, without the noise.
            and not (is_alike and told.measure < _FAR_BETTER * measured)
            and (told.line is None or self._is_of_unit(told.line, line))
        )

    def _is_of_unit(self, told: Line, training: Line | None) -> bool:
        """Numbers are told, in the unit of the training.

        No other line through the outputs tells them much better, or they are told nearly as well as
        those of the training: a model that is not done is off by a slope.
        """
        own = (1.0, 0.0) if training is None else (training.slope, training.doubt)
        if told.slope <= 0 or own[0] <= 0:
            return False
        self._slopes.append((told.slope / own[0], math.hypot(told.doubt, own[1])))
        best = told.of_line if training is None else max(told.of_line, training.error)
        if told.error >= _TOLD or told.error > _AS_LINE * best + _ROUNDING:
            return False
        return _is_one(self._slopes)


def is_of_another_unit(told: Line, training: Line | None) -> bool:
    """Nearly all is told, and by another slope than those of the training as well."""
    if not told.is_of_another_unit or training is None or training.slope <= 0:
        return told.is_of_another_unit
    return abs(told.slope / training.slope - 1) > max(_OFF, 3 * training.doubt)


def _is_one(ratios: Sequence[tuple[float, float]]) -> bool:
    """Whether the mean ratio is known well, and 1 but for what a unit is off by."""
    mean = sum(ratio for ratio, _ in ratios) / len(ratios)
    doubt = math.sqrt(sum(each * each for _, each in ratios)) / len(ratios)
    return doubt < _KNOWN and abs(mean - 1) < _OFF


def _is_told_as(measured: float, now: float, first: float, looks: int) -> bool:
    """Else they may be what another model says, which labels are like.

    That shows once much is learned; where little can be, they have to be told nearly as well.
    """
    if now < _LEARNED * first:
        return measured < now + _WORSE * first
    return looks >= _LATE_LOOKS and measured < _NEARLY * now
