"""How a training's loss is given what a model returns and its labels.

By that it can be computed of an evaluation that computes none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from traindbg import _core
from traindbg.hooks.torch.base.device import widest_of
from traindbg.hooks.torch.evaluations.module_modes import acts_by_mode
from traindbg.hooks.torch.labels.evidence import OF_CLASSES, OF_TWO, Labels, are_probabilities
from traindbg.hooks.torch.labels.loader_batches import is_plain, leaves_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.evaluations.phases import Evaluations
    from traindbg.hooks.torch.labels.loader_batches import Path

MOST_CLASSES = 1 << 17
_HALVES = (torch.float16, torch.bfloat16)

# What of a training's call is given to that of an evaluation, by the loss.
_SETTINGS: dict[str, tuple[str, ...]] = {
    **OF_CLASSES,
    **OF_TWO,
    "huber_loss": ("delta",),
    "l1_loss": (),
    "mse_loss": (),
    "smooth_l1_loss": ("beta",),
}
# Not what a program may put in their places. They are listened to inside (`steps.patches`).
_FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    name: getattr(functional, name) for name in _SETTINGS
}


def settings_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """With what else a loss is computed; None where that is not for a batch of an evaluation."""
    if name not in _SETTINGS or len(args) > 3:
        return None
    given = {key: value for key, value in kwargs.items() if key not in ("input", "target")}
    if len(args) == 3:
        given["reduction" if name == "huber_loss" else "weight"] = args[2]
    if given.pop("reduction", "mean") != "mean":
        return None
    given = {key: value for key, value in given.items() if value is not None}
    if not given.keys() <= set(_SETTINGS[name]):
        return None  # weights of the batch's samples
    return given


def are_equal(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two losses are computed with the same settings."""
    if one.keys() != other.keys():
        return False
    pairs = ((value, other[key]) for key, value in one.items())
    return all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else type(a) is type(b) and a == b
        for a, b in pairs
    )


# How a shape follows from another one: with the names of `FORMS`.
FORMS: dict[str, Callable[[torch.Size], tuple[int, ...]]] = {
    "same": tuple,
    "without ones": lambda size: (size[0], *(each for each in size[1:] if each != 1)),
    "as column": lambda size: (*size, 1),
    "of each place": lambda size: (size[:-1].numel(), size[-1]),
    "in line": lambda size: (size.numel(),),
}


def form_of(size: torch.Size, own: torch.Size) -> str | None:
    """How `size` follows from `own`; None: in another way."""
    return next((name for name, form in FORMS.items() if form(own) == tuple(size)), None)


def output_of(
    outputs: dict[Path, tuple[torch.Tensor, int]], given: torch.Tensor
) -> tuple[Path, torch.Tensor] | None:
    """Which output a loss is given: all of it, unchanged, perhaps in another shape."""
    for path, (output, version) in outputs.items():
        if given.is_inference() or given._version != version or output.dtype != given.dtype:
            continue
        is_same = output.data_ptr() == given.data_ptr() and output.numel() == given.numel()
        if is_same and output.is_contiguous() and given.is_contiguous():
            return path, output
    return None


def can_be_given(
    name: str, scores: torch.Tensor, target: torch.Tensor, settings: dict[str, Any]
) -> bool:
    """Whether the loss is a number; else a device may refuse to go on."""
    if name in OF_CLASSES and not target.is_floating_point():
        if target.shape != (*scores.shape[:1], *scores.shape[2:]):
            return False
        counts = target != settings.get("ignore_index", -100)
        is_class = (target >= 0) & (target < scores.shape[1])
        return bool(counts.any() & (is_class | ~counts).all())
    if target.shape != scores.shape:
        return False
    if name in OF_TWO:
        within = (target >= 0) & (target <= 1)
        if name == "binary_cross_entropy":
            within &= (scores >= 0) & (scores <= 1)
        return bool(within.all())
    return bool(target.isfinite().all())


def outputs_of(output: Any) -> dict[Path, tuple[torch.Tensor, int]]:
    """What a model returned, without graphs, and its versions."""
    return {
        path: (leaf.detach(), leaf._version)
        for path, leaf in leaves_of(output)
        if is_plain(leaf) and leaf.is_floating_point() and not leaf.is_inference()
    }


def in_wide(scores: torch.Tensor) -> torch.Tensor:
    """Scores as autocast would make them for a loss."""
    return scores.to(torch.float32) if scores.dtype in _HALVES else scores


def told_apart(given: Any) -> tuple[tuple[Any, ...], dict[Path, Any]]:
    """What a model is given: what is no tensor, to be compared, and the tensors."""
    others: list[Any] = []
    tensors: dict[Path, Any] = {}
    for path, leaf in leaves_of(given):
        if isinstance(leaf, torch.Tensor):
            tensors[path] = leaf
        else:
            is_word = type(leaf) in (bool, int, float, str)
            others.append((path, repr(leaf) if is_word else id(leaf)))
    return tuple(others), tensors


def is_evaluated(watched: WatchedModels, evaluations: Evaluations) -> bool:
    """Whether the model is what is evaluated, and nothing in it acts as in training."""
    models = [watcher.model for watcher in watched.watchers]
    if len(models) != 1 or models[0] is None or evaluations.mode() != _core.EVAL:
        return False
    return not models[0].training or not any(map(acts_by_mode, models[0].modules()))


class OfTraining:
    """The labels of a training's first steps, as far as they tell what labels are like."""

    def __init__(self) -> None:
        self._labels: list[tuple[int, float, float]] = []  # how many, their sum, that of squares
        self.are_probabilities = True  # what its loss is given
        self._of_each: (
            list[int] | None
        ) = []  # how often each class; None: they are no numbers of it

    def add(self, loss: str, scores: torch.Tensor, target: torch.Tensor) -> bool:
        """Of a step; whether it tells anything: of labels that are all the same nothing shows."""
        if not bool((target != target.reshape(-1)[0]).any()):
            return False
        self.are_probabilities &= bool(are_probabilities(loss, scores))
        wide = target.to(widest_of(target))
        self._labels.append((target.numel(), float(wide.sum()), float(wide.square().sum())))
        self._count(target, scores.shape[1] if loss in OF_CLASSES else 0)
        return True

    def _count(self, target: torch.Tensor, classes: int) -> None:
        if self._of_each is None or classes == 0 or target.is_floating_point():
            self._of_each = None
            return
        labels = target.reshape(-1)
        labels = labels[(labels >= 0) & (labels < classes)]  # what is ignored may be any number
        of_each = torch.bincount(labels, minlength=classes).tolist()
        before = self._of_each or [0] * classes
        self._of_each = [one + other for one, other in zip(before, of_each, strict=True)]

    def labels(self) -> Labels:
        number = sum(count for count, _, _ in self._labels)
        mean = sum(total for _, total, _ in self._labels) / number
        squares = sum(each for *_, each in self._labels) / number
        deviation = max(squares - mean * mean, 0.0) ** 0.5
        total = sum(self._of_each or ())
        shares = [count / total for count in self._of_each or ()] if total > 0 else []
        return Labels(mean, deviation, tuple(shares))


def on_device_of(scores: torch.Tensor, settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a loss, such as weights of classes, as it is given them with these scores."""
    return {
        key: value.to(scores.device, scores.dtype) if isinstance(value, torch.Tensor) else value
        for key, value in settings.items()
    }


class Computation:
    """Of losses of evaluations, by us. One per recording."""

    def __init__(self) -> None:
        self.is_under_way = False
        self.is_late = False  # the training has gone on: how things are now is not how they were

    def compute(
        self,
        name: str,
        settings: dict[str, Any],
        scores: torch.Tensor,
        target: torch.Tensor,
        is_late: bool = False,
    ) -> None:
        """Is heard as if the program did."""
        given = on_device_of(scores, settings)
        if target.is_floating_point():
            target = target.to(scores.dtype)
        self.is_under_way, self.is_late = True, is_late
        try:
            _FUNCTIONS[name](scores, target, **given)
        finally:
            self.is_under_way = self.is_late = False
