"""Evaluations that compute no loss, only how often the model is right, or how far it is off.

    hits += (model(x).argmax(1) == y).sum()      # no loss function is called
    error += (model(x) - y).abs().sum()

What the model returned stands beside the labels here, too. Where a program evaluates like this, the
loss that the training is about is computed of both and recorded as that of an evaluation. Which
side of a comparison are the labels shows by the other one: it is what the output says, the largest
score or the sign, or it is the output itself.

From where an evaluation may begin (`torch_standby`) a global hook hears what watched models return,
and from the first such output on comparisons and differences of tensors are heard, until a watched
model is called with gradients. In a training nothing is attached. That evaluations compute no loss
is known when the first one is over, of which nothing is recorded; from the first loss on that one
does compute nothing is heard any more.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional
from torch.nn.modules.module import register_module_forward_hook

from traindbg import _core
from traindbg.hooks.torch_compiled import compiler_in_use, our_hooks
from traindbg.hooks.torch_device import own_operations
from traindbg.hooks.torch_guard import boundary, guarded
from traindbg.hooks.torch_standby import standby

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg.hooks.torch_evaluations import Evaluations
    from traindbg.hooks.torch_guard import Guard
    from traindbg.hooks.torch_watched import WatchedModels

_EVAL = _core.EVAL
_MOST_IN_VAIN = 500  # times that gradients were switched off, and no watched model was called
_is_compiling = torch.compiler.is_compiling

# What of a training's call is given to that of its evaluation, by the loss.
_OF_CLASSES = {
    "cross_entropy": ("weight", "ignore_index", "label_smoothing"),
    "nll_loss": ("weight", "ignore_index"),
}
_OF_TWO = {
    "binary_cross_entropy_with_logits": ("pos_weight",),
    "binary_cross_entropy": (),
}
_OF_NUMBERS = {
    "mse_loss": (),
    "l1_loss": (),
    "smooth_l1_loss": ("beta",),
    "huber_loss": ("delta",),
}
_SETTINGS: dict[str, tuple[str, ...]] = {**_OF_CLASSES, **_OF_TWO, **_OF_NUMBERS}
_COMPARISONS = ("__eq__", "__ne__", "eq", "ne")
_DIFFERENCES = ("__sub__", "__rsub__", "sub")


def settings_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """With what else a loss is computed; None where that is not for one batch of an evaluation."""
    if name not in _SETTINGS or len(args) > 3:
        return None
    given = {key: value for key, value in kwargs.items() if key not in ("input", "target")}
    if len(args) == 3:
        given["weight"] = args[2]
    if given.pop("reduction", "mean") != "mean":
        return None
    given = {key: value for key, value in given.items() if value is not None}
    if not given.keys() <= set(_SETTINGS[name]):
        return None  # weights of the batch's samples
    return given


def _classes_of(
    name: str, output: torch.Tensor, one: torch.Tensor, other: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Scores as the loss takes them, and the labels of the two."""
    if one.is_floating_point() or other.is_floating_point() or output.dim() < 2:
        return None
    said = None
    for dim in (1, -1):
        if output.shape[dim] < 2 or output.numel() // output.shape[dim] != one.numel():
            continue
        largest = output.argmax(dim).reshape(-1)
        flat = one.reshape(-1), other.reshape(-1)
        for labels, same in ((flat[1], flat[0]), (flat[0], flat[1])):
            if torch.equal(largest, same.to(largest.dtype)):
                said = dim, labels
                break
        if said is not None:
            break
    if said is None:
        return None
    dim, labels = said
    scores = output.movedim(dim, -1).reshape(-1, output.shape[dim])
    labels = labels.to(torch.int64)
    if labels.numel() == 0 or labels.min() < 0 or labels.max() >= scores.shape[1]:
        return None
    # What the loss is given may be made of it: in evaluation mode some models return probabilities.
    total = scores.exp().sum(1) if name == "nll_loss" else scores.sum(1)
    sums_to_one = bool(((total - 1).abs() < 1e-3).all())
    are_probabilities = name != "nll_loss" and sums_to_one and bool((scores >= 0).all())
    if are_probabilities or (name == "nll_loss" and not sums_to_one):
        return None
    return scores, labels


def _answers_of(
    name: str, output: torch.Tensor, one: torch.Tensor, other: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The same of yes and no."""
    if output.numel() != one.numel() or output.numel() == 0:
        return None
    flat = output.reshape(-1)
    said = flat > (0.5 if name == "binary_cross_entropy" else 0.0)
    if name == "binary_cross_entropy" and not bool(((flat >= 0) & (flat <= 1)).all()):
        return None
    sides = one.reshape(-1), other.reshape(-1)
    for same, labels in (sides, sides[::-1]):
        if torch.equal(said, same > 0.5) and bool(((labels == 0) | (labels == 1)).all()):
            return flat, labels.to(flat.dtype)
    return None


def _numbers_of(
    output: torch.Tensor, one: torch.Tensor, other: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The same of a difference: one side is the output, or a view of all of it."""
    for same, labels in ((one, other), (other, one)):
        is_output = same.data_ptr() == output.data_ptr() and same.dtype == output.dtype
        if is_output and same.numel() == output.numel() and labels.is_floating_point():
            return same.detach(), labels.detach().to(same.dtype)
    return None


def _is_plain(value: Any) -> bool:
    return type(value) is torch.Tensor and value.layout is torch.strided


def _is_transforming() -> bool:
    """Whether torch.func is at work: values are wrapped then, and not to be read."""
    return torch._C._functorch.peek_interpreter_stack() is not None


class Comparisons:
    """One per recording. Holds the output of an evaluation's last batch, until it is compared.

    The losses that it computes are heard as those of the program are.
    """

    def __init__(self, guard: Guard, watched: WatchedModels, evaluations: Evaluations) -> None:
        self.guard = guard
        self.is_wanted = False  # losses of evaluations are asked for
        self._watched = watched
        self._evaluations = evaluations
        self._handle: Any = None
        self._undo: list[Callable[[], None]] = []
        self._roots: set[int] = set()
        self._thread = 0
        self.forget()

    def forget(self) -> None:
        """Another training begins."""
        self.end()
        self._loss = ""  # what is trained by
        self._settings: dict[str, Any] = {}
        self._is_off = False  # its evaluations compute losses
        self._is_on = False  # they do not
        self._output: torch.Tensor | None = None
        self._awaits = False  # one was compared, and no loss has come
        self._is_inside = False
        self._in_vain = 0

    def end(self) -> None:
        """Listens no more."""
        standby.leave(self)
        self._take_off()

    def trained_by(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A loss of the training was computed. The first one that is known here counts."""
        if self._loss or self._is_off or not self.is_wanted or compiler_in_use():
            return
        settings = settings_of(name, args, kwargs)
        if settings is None:
            return
        self._loss, self._settings = name, settings
        self._thread = threading.get_ident()
        standby.wait(self)

    def evaluated(self) -> None:
        """A loss of an evaluation was computed; by the program, unless it is ours."""
        if not self._is_inside and not self._is_off:
            self._is_off = True
            self.end()

    # What is heard.

    def evaluation_may_begin(self) -> None:
        """Gradients were switched off, or a module left training mode. The lock is held."""
        if self._is_off or compiler_in_use():
            return
        if threading.get_ident() != self._thread:
            standby.wait(self)
            return
        self._in_vain += 1
        if self._in_vain <= _MOST_IN_VAIN and self._handle is None:
            self._roots = {id(watcher.model) for watcher in self._watched.every()}
            self._handle = register_module_forward_hook(self._hear)
            our_hooks.add(self._handle.id)

    def training_goes_on(self) -> None:
        """A pass of the training was seen. The lock is held."""
        if self._handle is not None:
            self._take_off()
            standby.wait(self)

    def _take_off(self) -> None:
        self._output = None
        for undo in self._undo:
            undo()
        self._undo = []
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()
            our_hooks.discard(handle.id)

    def _hear(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        if id(module) not in self._roots or threading.get_ident() != self._thread:
            return
        if not _is_compiling():
            self._returned(output)

    @boundary("comparisons")
    def _returned(self, output: Any) -> None:
        if self._evaluations.mode() != _EVAL:
            standby.training_goes_on()
            if self._handle is not None:  # who told of the evaluation was told of its end
                with standby.lock:
                    self.training_goes_on()
            return
        self._in_vain = 0
        if not self._undo:  # the first batch of an evaluation
            self._is_on = self._awaits
        is_score = _is_plain(output) and output.is_floating_point() and not _is_transforming()
        self._output = output.detach() if is_score else None
        if not self._undo:
            names = _DIFFERENCES if self._loss in _OF_NUMBERS else _COMPARISONS
            self._undo = [_listen_to(name, self._compares) for name in names]

    def _compares(self, one: Any, other: Any) -> None:
        if self._output is None or self._is_inside or threading.get_ident() != self._thread:
            return
        if not _is_plain(one) or not _is_plain(other) or _is_compiling() or _is_transforming():
            return
        if one.numel() == other.numel() and one.device == other.device:
            self._is_inside = True
            try:
                self._compared(one, other)
            finally:
                self._is_inside = False

    @boundary("comparisons")
    def _compared(self, one: torch.Tensor, other: torch.Tensor) -> None:
        output = self._output
        if output is None or output.device != one.device:
            return
        with own_operations(), torch.no_grad():
            if self._loss in _OF_CLASSES:
                found = _classes_of(self._loss, output, one, other)
            elif self._loss in _OF_TWO:
                found = _answers_of(self._loss, output, one, other)
            else:
                found = _numbers_of(output, one, other)
            if found is None:
                return
            self._output = None  # once
            self._awaits = True
            if not self._is_on or self._evaluations.mode() != _EVAL:
                return
            getattr(functional, self._loss)(*found, **self._settings)


def _listen_to(name: str, compares: Callable[[Any, Any], None]) -> Callable[[], None]:
    """Hears a method of tensors, until what it returns is called."""
    is_own = name in torch.Tensor.__dict__
    original = getattr(torch.Tensor, name)

    @functools.wraps(original)
    def listening(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, other, *args, **kwargs)
        if not args and not kwargs:
            guarded("comparisons", compares, self, other)
        return result

    setattr(torch.Tensor, name, listening)

    def undo() -> None:
        if torch.Tensor.__dict__.get(name) is not listening:
            return  # somebody else's is in front of it, and calls it
        if is_own:
            setattr(torch.Tensor, name, original)
        else:
            delattr(torch.Tensor, name)

    return undo
