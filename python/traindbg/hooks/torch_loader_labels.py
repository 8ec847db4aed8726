"""Losses of evaluations that compute none, of the labels that came with the loader's batch.

    for x, y in loader:                          # of an evaluation, without gradients
        hits += (model(x).argmax(1) == y).sum()  # no loss function is called

Which part of a `DataLoader`'s batch the model is given, which one is the target of its loss, and
that this loss is given what the model returned, shows in the first steps of a training: they are
the same memory, or have the same values. Where all these steps agree, the training's loss is
computed of an evaluation's batch once the model has returned, and recorded as that of the
evaluation. That evaluations compute no loss is known when the first one is over, of which nothing
is recorded; with the first loss that one does compute it ends for good.

So it says nothing of what is evaluated in another way than it is trained: of inputs that were
changed (noise, a permuted column), of a batch that is given a second time, of outputs of another
form, of labels that the loss cannot be given.

Nothing of tensors is listened to. A batch is kept until the next one or the end of the loader; one
of the training only by weak references, after the first steps.
"""

from __future__ import annotations

import functools
import math
import threading
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn import functional

from traindbg import _core
from traindbg.hooks.torch_compiled import compiler_in_use
from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_guard import boundary, guarded
from traindbg.hooks.torch_names import tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch_evaluations import Evaluations
    from traindbg.hooks.torch_guard import Guard
    from traindbg.hooks.torch_watched import WatchedModels

_EVAL = _core.EVAL
_STEPS = 3  # of a training, that have to agree
_MOST_STEPS = 32  # by which they have
_MOST_PARTS = 8  # of a batch
_BATCHES = 2  # that are kept: some loops draw one ahead, or from two loaders in turn
_FEW_ROWS = 4  # of an input that was copied, by which it is known again
_FEW_VALUES = 4096  # of them
_MOST_VALUES = 1 << 16  # of labels
_FEW_SCORES = 8  # fewer may lie between 0 and 1 by chance

_HALVES = (torch.float16, torch.bfloat16)

# What of a training's call is given to that of an evaluation, by the loss.
_OF_CLASSES = {
    "cross_entropy": ("weight", "ignore_index", "label_smoothing"),
    "nll_loss": ("weight", "ignore_index"),
}
_SETTINGS: dict[str, tuple[str, ...]] = {
    **_OF_CLASSES,
    "binary_cross_entropy": (),
    "binary_cross_entropy_with_logits": ("pos_weight",),
    "huber_loss": ("delta",),
    "l1_loss": (),
    "mse_loss": (),
    "smooth_l1_loss": ("beta",),
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


def _is_plain(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.layout is torch.strided
        and not value.is_quantized
        and value.dim() > 0
        and value.numel() > 0
    )


def _first_values(tensor: torch.Tensor, rows: int | None, most: int) -> torch.Tensor:
    return tensor.detach()[:rows].reshape(-1)[:most]


class _Part:
    """A tensor of a batch, and how to tell that nothing was written into it since."""

    __slots__ = ("_begins_with", "_tensor", "_version")

    def __init__(self, tensor: torch.Tensor, is_kept: bool) -> None:
        self._tensor: Callable[[], torch.Tensor | None] = (
            (lambda: tensor) if is_kept else weakref.ref(tensor)
        )
        self._version = -1
        self._begins_with: torch.Tensor | None = None
        if not tensor.is_inference():
            self._version = tensor._version
        elif is_kept:  # it has no version
            with own_operations():
                self._begins_with = _first_values(tensor, _FEW_ROWS, _FEW_VALUES).clone()

    def tensor(self) -> torch.Tensor | None:
        """None: it is gone, or something was written into it."""
        tensor = self._tensor()
        if tensor is None:
            return None
        if self._begins_with is not None:
            now = _first_values(tensor, _FEW_ROWS, _FEW_VALUES)
            is_as_given = bool(torch.equal(now, self._begins_with))
        else:
            is_as_given = not tensor.is_inference() and tensor._version == self._version
        return tensor if is_as_given else None

    def is_given(self, tensor: torch.Tensor, rows: int | None, most: int) -> bool:
        """Whether `tensor` has its memory, or its values: of so many rows the first ones."""
        own = self.tensor()
        if own is None or own.numel() != tensor.numel():
            return False
        if tensor.data_ptr() == own.data_ptr() and tensor.device == own.device:
            return bool(tensor.dtype == own.dtype)
        mine = _first_values(own, rows, most).to(tensor.device, tensor.dtype)
        return bool(torch.equal(_first_values(tensor, rows, most), mine))


class _Batch:
    """What a loader gave."""

    __slots__ = ("is_used", "parts")

    def __init__(self, batch: Any, is_kept: bool) -> None:
        self.is_used = False  # a loss was computed of it
        self.parts: dict[str, _Part] = {}
        for suffix, tensor in tensors_in(batch, 3):
            if len(self.parts) < _MOST_PARTS and _is_plain(tensor):
                self.parts[suffix] = _Part(tensor, is_kept)

    def given_as(self, number: int, tensor: torch.Tensor) -> tuple[int, str] | None:
        for suffix, part in self.parts.items():
            if part.is_given(tensor, _FEW_ROWS, _FEW_VALUES):
                return number, suffix
        return None


class DrawnBatches:
    """The batches that loaders of the process gave last. Kept while somebody wants them."""

    def __init__(self) -> None:
        self.keeps: Callable[[], bool] | None = None  # whether more than weak references; None: not
        self._thread = 0
        self._last: list[_Batch] = []

    def want(self, keeps: Callable[[], bool]) -> None:
        """From now on, of this thread."""
        self.keeps, self._thread = keeps, threading.get_ident()

    def end(self) -> None:
        self.keeps = None
        self._last = []

    def drawn(self, batch: Any) -> None:
        keeps = self.keeps
        if keeps is not None and threading.get_ident() == self._thread:
            self._last = [*self._last[1 - _BATCHES :], _Batch(batch, keeps())]

    def ended(self) -> None:
        """A loader has no further batch."""
        if threading.get_ident() == self._thread:
            self._last = []

    def last(self) -> list[_Batch]:
        """The latest first."""
        return self._last[::-1]


batches = DrawnBatches()


def listening_next(original: Callable[..., Any]) -> Callable[..., Any]:
    """`__next__` of what a `DataLoader` is iterated with."""

    @functools.wraps(original)
    def __next__(self: Any) -> Any:  # noqa: N807
        if batches.keeps is None:
            return original(self)
        try:
            batch = original(self)
        except StopIteration:
            batches.ended()
            raise
        guarded("loader labels", batches.drawn, batch)
        return batch

    return __next__


class _Pass(NamedTuple):
    """A forward pass of the training whose loss is awaited."""

    batch: _Batch
    inputs: tuple[tuple[int, str], ...]
    outputs: dict[str, tuple[torch.Tensor, int]]  # without graphs; and versions; by their suffixes


class _Roles(NamedTuple):
    """What of a batch is what, and how it is given to the loss."""

    inputs: tuple[tuple[int, str], ...]  # of the model: which one, and the part of a batch
    target: str  # the part
    output: str  # suffix of what of the output the loss is given
    scores_shape: tuple[int, ...]  # without the first dimension
    target_shape: tuple[int, ...]
    target_dtype: torch.dtype
    loss: str


def _form(tensor: torch.Tensor) -> tuple[int, ...]:
    return tuple(tensor.shape[1:])


def _inputs(batch: _Batch, given: Any) -> tuple[tuple[int, str], ...]:
    """Those inputs of a model that are parts of a batch."""
    tensors = enumerate(tensor for _, tensor in tensors_in(given, 3))
    found = (batch.given_as(number, tensor) for number, tensor in tensors if _is_plain(tensor))
    return tuple(each for each in found if each is not None)


def _scores_of(outputs: dict[str, tuple[torch.Tensor, int]], given: torch.Tensor) -> str | None:
    """Which output a loss is given: all of it, unchanged, perhaps in another shape."""
    for suffix, (output, version) in outputs.items():
        if given._version != version or output.numel() != given.numel():
            continue
        is_same = output.data_ptr() == given.data_ptr() and output.dtype == given.dtype
        if is_same and output.is_contiguous() and given.is_contiguous():
            return suffix
    return None


def _are_probabilities_of(name: str, scores: torch.Tensor) -> bool:
    """Whether scores are probabilities, which some models return in evaluation mode alone."""
    if name in _OF_CLASSES:
        are_one = (scores.sum(1) - 1).abs() < 1e-3
        return bool((scores >= 0).all() & are_one.all())
    if name != "binary_cross_entropy_with_logits" or scores.numel() < _FEW_SCORES:
        return False
    return bool(((scores >= 0) & (scores <= 1)).all())


def _can_be_given(
    name: str, scores: torch.Tensor, target: torch.Tensor, settings: dict[str, Any]
) -> bool:
    """Whether the loss is a number; else a device may refuse to go on."""
    if name in _OF_CLASSES:
        if target.is_floating_point():
            return bool(target.shape == scores.shape)
        ignored = settings.get("ignore_index", -100)
        counts = target != ignored
        is_class = (target >= 0) & (target < scores.shape[1])
        return bool(counts.any() & (is_class | ~counts).all())
    if target.shape != scores.shape:
        return False
    if name == "binary_cross_entropy":
        within = (target >= 0) & (target <= 1) & (scores >= 0) & (scores <= 1)
        return bool(within.all())
    return True


class LoaderLabels:
    """One per recording, one thread. The losses that it computes are heard as the program's."""

    def __init__(self, guard: Guard, watched: WatchedModels, evaluations: Evaluations) -> None:
        self.guard = guard
        self._hot = guard.hot
        self._watched = watched
        self._evaluations = evaluations
        self._is_wanted = False
        self._is_inside = False
        self.forget()

    def follow(self, is_wanted: bool) -> None:
        """Losses of evaluations are asked for, or not."""
        self._is_wanted = is_wanted
        self._begin()

    def forget(self) -> None:
        """Another training begins."""
        batches.end()
        self._pass: _Pass | None = None
        self._roles: _Roles | None = None
        self._settings: dict[str, Any] = {}
        self._agreed = 0  # steps
        self._first: int | None = None  # the step before which the first evaluation was
        self._are_probabilities = False  # what the training's loss is given
        self._is_over = False
        self._begin()

    def _begin(self) -> None:
        if self._is_wanted and not self._is_over and batches.keeps is None:
            batches.want(self._keeps)

    def end(self) -> None:
        """Evaluations have losses, or none can be computed."""
        self._is_over = True
        self._pass = None
        batches.end()

    def _keeps(self) -> bool:
        """Whether a batch is kept: of the training's first steps, and of evaluations."""
        if self._agreed < _STEPS:
            return True
        return not torch.is_grad_enabled() or self._evaluations.mode() == _EVAL

    def evaluated(self) -> None:
        """A loss of an evaluation was computed; by the program, unless it is ours."""
        if not self._is_inside and not self._is_over:
            self.end()

    # A training.

    def trains(self, given: Any, output: Any) -> None:
        """The model has returned, in a step of the training that is looked at."""
        if self._is_over or self._agreed >= _STEPS or not self._is_wanted:
            return
        if self._hot.steps > _MOST_STEPS or len(self._watched.watchers) != 1 or compiler_in_use():
            self.end()
            return
        self._pass = None
        with own_operations():
            for batch in batches.last():
                inputs = _inputs(batch, given)
                if inputs:
                    outputs = {
                        suffix: (tensor.detach(), tensor._version)
                        for suffix, tensor in tensors_in(output, 2)
                        if _is_plain(tensor) and tensor.is_floating_point()
                    }
                    self._pass = _Pass(batch, inputs, outputs)
                    return
        self.end()  # it is given something else

    def trained_by(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss of the training was computed; the first one after each pass counts."""
        awaited, self._pass = self._pass, None
        if awaited is None or self._is_over:
            return
        scores = args[0] if args else kwargs.get("input")
        target = args[1] if len(args) > 1 else kwargs.get("target")
        settings = settings_of(name, args, kwargs)
        roles = None
        if settings is not None and _is_plain(scores) and _is_plain(target):
            with own_operations():
                roles = self._roles_of(awaited, name, scores, target)
        if roles is None or (self._roles is not None and roles != self._roles):
            self.end()
            return
        self._roles, self._settings = roles, settings or {}
        self._agreed += 1

    def _roles_of(
        self, awaited: _Pass, name: str, scores: torch.Tensor, target: torch.Tensor
    ) -> _Roles | None:
        output = _scores_of(awaited.outputs, scores)
        parts = awaited.batch.parts.items()
        found = [s for s, part in parts if part.is_given(target, None, _MOST_VALUES)]
        if output is None or len(found) != 1 or (name in _OF_CLASSES and scores.dim() < 2):
            return None
        self._are_probabilities |= _are_probabilities_of(name, scores.detach())
        shapes = _form(scores), _form(target)
        return _Roles(awaited.inputs, found[0], output, *shapes, target.dtype, name)

    # An evaluation.

    @boundary("loader labels")
    def evaluates(self, given: Any, output: Any) -> None:
        """The model has returned, in a pass of an evaluation."""
        roles = self._roles
        if self._is_over or roles is None or self._agreed < _STEPS:
            return
        if self._first is None:
            self._first = self._hot.steps
        if self._first == self._hot.steps or len(self._watched.watchers) != 1:
            return
        with own_operations():
            for batch in batches.last():
                if set(roles.inputs) <= set(_inputs(batch, given)):
                    if not batch.is_used:
                        batch.is_used = True
                        self._score(roles, batch, output)
                    return

    def _score(self, roles: _Roles, batch: _Batch, output: Any) -> None:
        scores = dict(tensors_in(output, 2)).get(roles.output)
        part = batch.parts.get(roles.target)
        labels = None if part is None else part.tensor()
        if scores is None or labels is None or not _is_plain(scores) or capturing_graph(scores):
            return
        rows = math.prod(roles.target_shape)
        if labels.numel() % max(rows, 1) or scores.numel() % max(math.prod(roles.scores_shape), 1):
            return
        scores = scores.detach().reshape(-1, *roles.scores_shape)
        if scores.dtype in _HALVES:  # autocast would make them wider, too
            scores = scores.to(torch.float32)
        target = labels.to(scores.device, roles.target_dtype).reshape(-1, *roles.target_shape)
        if scores.shape[0] != target.shape[0]:
            return
        if not self._are_probabilities and _are_probabilities_of(roles.loss, scores):
            return
        if not _can_be_given(roles.loss, scores, target, self._settings):
            return
        if self._evaluations.mode() != _EVAL:
            return
        self._is_inside = True
        try:
            settings = {
                key: value.to(scores.device, scores.dtype) if _is_plain(value) else value
                for key, value in self._settings.items()
            }
            getattr(functional, roles.loss)(scores, target, **settings)
        finally:
            self._is_inside = False
