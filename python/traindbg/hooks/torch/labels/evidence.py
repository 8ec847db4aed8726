"""Whether a model's outputs and what may be its labels go together, by far more than chance.

In one pass over a set of data: of classes by the hits beyond those of labels that are dealt anew,
of yes and no by the correlation, of numbers by it and by their units, which are the training's.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from traindbg.hooks.torch.base.device import widest_of

_MOST_COLUMNS = 4096
_FEWEST = 32  # labels
_BY_CHANCE = 3.0  # standard deviations
_EXPLAINED = 0.1  # of what chance leaves over
_SLOPES = (0.5, 2.0)  # of labels by outputs
_SPREADS = (0.4, 2.5)  # of labels, as multiples of the training's
_ROUNDING = 0.02  # of probabilities in few bits
_FEWEST_ALIKE = 64  # labels, whose classes are as frequent as the training's
_APART = 0.3  # how far the shares of all classes may be off, half of the sum

# Losses of torch.nn.functional; with the settings that a call of an evaluation has, too.
OF_CLASSES = {
    "cross_entropy": ("weight", "ignore_index", "label_smoothing"),
    "nll_loss": ("weight", "ignore_index"),
}
OF_TWO = {
    "binary_cross_entropy": (),
    "binary_cross_entropy_with_logits": ("pos_weight",),
}


def are_probabilities(name: str, scores: torch.Tensor) -> torch.Tensor:
    """Whether scores are: some models return them in evaluation mode alone. One number."""
    if name in OF_CLASSES:
        wide = scores.to(torch.float32)
        return (wide >= 0).all() & ((wide.sum(1) - 1).abs() < _ROUNDING).all()
    return ((scores >= 0) & (scores <= 1)).all()


class Labels(NamedTuple):
    """In the steps of the training that agreed."""

    mean: float  # of those that are numbers
    deviation: float
    shares: tuple[float, ...] = ()  # of each class


class Evidence:
    """Whether outputs and labels go together, in one pass over a set of data."""

    def __init__(self, name: str, of_training: Labels | None) -> None:
        self._name = name
        self._of_training = of_training
        self._are_probabilities: torch.Tensor | None = None  # in all of them
        self._rows = 0
        self._is_mixed = False
        self._sums: torch.Tensor | None = None

    def add(self, scores: torch.Tensor, target: torch.Tensor, ignored: int) -> None:
        """One batch. Waits for no device."""
        are = are_probabilities(self._name, scores)
        before = self._are_probabilities
        self._are_probabilities = are if before is None else before & are
        self._rows += scores.shape[0]
        if self._name in OF_CLASSES:
            sums = self._of_classes(scores, target, ignored)
        elif self._name in OF_TWO:
            are_logits = self._name == "binary_cross_entropy_with_logits"
            sums = _moments(_columns(scores.sigmoid() if are_logits else scores), _columns(target))
        else:
            sums = _moments(_columns(scores), _columns(target))
        if self._sums is None:
            self._sums = sums
        elif self._sums.shape == sums.shape:
            self._sums = self._sums + sums
        else:
            self._is_mixed = True  # images of several sizes, say

    @staticmethod
    def _of_classes(scores: torch.Tensor, target: torch.Tensor, ignored: int) -> torch.Tensor:
        """How often each class is said and wanted, and both."""
        labels = target.argmax(1) if target.is_floating_point() else target
        said, labels = scores.argmax(1).reshape(-1), labels.reshape(-1)
        counts = (labels != ignored).long()
        labels = labels * counts
        each = torch.zeros(3, scores.shape[1], dtype=torch.long, device=said.device)
        each[0].index_add_(0, said, counts)
        each[1].index_add_(0, labels, counts)
        each[2].index_add_(0, labels, counts * (said == labels))
        return each

    def are_probabilities(self) -> bool:
        """Whether all scores are, of a loss that is to be given others. Waits for a device."""
        are = self._are_probabilities
        wants_others = self._name in (*OF_CLASSES, "binary_cross_entropy_with_logits")
        return wants_others and are is not None and bool(are)

    def is_enough(self) -> bool:
        """Waits for a device."""
        if self._sums is None or self._is_mixed or self._rows < _FEWEST:
            return False
        sums = self._sums.double().cpu()
        if self._name in OF_CLASSES:
            said, labels, both = sums
            number = float(labels.sum())
            hits, by_chance = float(both.sum()), float(said @ labels) / max(number, 1.0)
            share = self._rows / max(number, 1.0)  # places of one row go together
            more = hits - by_chance
            is_sure = more * share > _BY_CHANCE * max(by_chance * share, 1.0) ** 0.5
            return bool(is_sure and more > _EXPLAINED * (number - by_chance))
        number, p, t, pp, tt, pt = sums
        p, t = p / number, t / number
        together = float((pt / number - p * t).mean())
        of_outputs = float((pp / number - p * p).mean())
        of_labels = float((tt / number - t * t).mean())
        if of_outputs <= 0 or of_labels <= 0 or together <= 0:
            return False
        correlation = together / (of_outputs * of_labels) ** 0.5
        if correlation * self._rows**0.5 < _BY_CHANCE:
            return False
        if self._name in OF_TWO:
            return bool(correlation > _EXPLAINED)
        apart = of_outputs + of_labels + float((p - t).square().mean())
        is_of_unit = _SLOPES[0] < together / of_outputs < _SLOPES[1]
        is_much = is_of_unit and 2 * together > _EXPLAINED * apart
        return is_much and self._is_usual(t, tt / number)

    def are_alike(self) -> bool:
        """Whether labels are classes that are as frequent as the training's. Waits for a device."""
        known = self._of_training
        if self._sums is None or self._is_mixed or self._rows < _FEWEST_ALIKE or known is None:
            return False
        sums = self._sums.double().cpu()
        if self._name in OF_CLASSES:
            labels = sums[1] / sums[1].sum().clamp_min(1.0)
            shares = torch.zeros_like(labels)
            given = torch.tensor(known.shares[: len(labels)], dtype=labels.dtype)
            shares[: len(given)] = given
            has_several = bool((labels < 1).all()) and len(known.shares) > 1
            return has_several and float((labels - shares).abs().sum()) / 2 < _APART
        if self._name not in OF_TWO:
            return False
        number, _, t, _, tt, _ = sums
        yes, squares = t / number, tt / number
        is_one_or_zero = bool(((yes - squares).abs() < 1e-6).all())
        is_both = bool(((yes > 0) & (yes < 1)).all()) and 0 < known.mean < 1
        return is_one_or_zero and is_both and abs(float(yes.mean()) - known.mean) < _APART / 2

    def _is_usual(self, means: torch.Tensor, squares: torch.Tensor) -> bool:
        """Whether labels lie where those of the training did."""
        known = self._of_training
        if known is None:
            return False
        mean = float(means.mean())
        deviation = max(float(squares.mean()) - mean * mean, 0.0) ** 0.5
        is_near = abs(mean - known.mean) < max(known.deviation, deviation)
        is_spread = _SPREADS[0] < deviation / max(known.deviation, 1e-30) < _SPREADS[1]
        return bool(is_near and is_spread)


def _columns(tensor: torch.Tensor) -> torch.Tensor:
    """One row each; of very many values as many places as there are, taken together."""
    wide = tensor.to(widest_of(tensor)).reshape(tensor.shape[0], -1)
    return wide if wide.shape[1] <= _MOST_COLUMNS else wide.reshape(-1, 1)


def _moments(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Of each column: how many, and the sums of both, their squares and their product."""
    count = torch.full_like(outputs[0], outputs.shape[0])
    sums = (outputs, labels, outputs.square(), labels.square(), outputs * labels)
    return torch.stack([count, *(each.sum(0) for each in sums)])
