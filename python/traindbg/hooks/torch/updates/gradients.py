"""Gradients as backward left them, before they are unscaled and clipped, and what was done to them.

Only at steps that need it. The first of `GradScaler.unscale_`, `clip_grad_norm_` and
`clip_grad_value_` after a backward pass finds them so: they are copied then, and taken when the
optimizer steps, because a step may still be skipped. Where none of them was called, they are what
the optimizer uses.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Protocol

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph, own_operations, version_of
from traindbg.hooks.torch.base.later import brought
from traindbg.hooks.torch.base.shards import local_part, whole_here

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traindbg.hooks.torch.base.parameters import Owner, Parameters

GRADIENTS_BEFORE = _core.ROLE_BITS["gradient_before"]
_MOST_LOOKED_AT = 16  # gradients that are asked whether they are finite
_LARGE = 1 << 16  # elements; larger ones are not


class Taker(Protocol):
    """Who registers and takes tensors (`base.tensors`)."""

    def tensor_id(
        self, name: str, role: str, tensor: torch.Tensor | None, owner: Owner | None
    ) -> int: ...
    def take_batch(
        self, ids: list[int], tensors: list[torch.Tensor] | list[torch.Tensor | None]
    ) -> None: ...
    def take_number(self, tensor_id: int, value: Any) -> None: ...


class Models(Protocol):
    """Who knows the watched models (`base.watched`)."""

    def owners(self) -> dict[int, Owner]: ...


def scale_of(optimizer: torch.optim.Optimizer) -> torch.Tensor | None:
    """What the gradients are still multiplied with when the optimizer steps; None for nothing.

    A fused optimizer is told of a GradScaler's scale and divides by it in its own code.
    """
    scale = getattr(optimizer, "grad_scale", None)
    return scale if isinstance(scale, torch.Tensor) and scale.numel() == 1 else None


def take_scaled(
    taker: Taker, ids: list[int], gradients: list[torch.Tensor | None], scale: torch.Tensor
) -> None:
    """Takes the gradients as they are after a division by `scale`, one after the other."""
    with own_operations():
        for tensor_id, gradient in zip(ids, gradients, strict=True):
            if gradient is None:
                continue
            part = local_part(gradient.detach())
            if not capturing_graph(part):
                taker.take_batch([tensor_id], [part / scale.to(part.device)])


def _are_finite(gradient: torch.Tensor | None) -> torch.Tensor | None:
    """Whether no element is infinite or NaN, on its device. None where that cannot be asked."""
    if gradient is None or not gradient.is_floating_point():
        return None
    with own_operations():
        part = local_part(gradient.detach())
        if part.is_sparse:
            part = part._values()
        if part.numel() == 0 or capturing_graph(part):
            return None
        return torch.isfinite(part).all()


def is_not_finite(gradient: torch.Tensor | None) -> bool:
    """Whether some element is infinite or NaN. False where that cannot be asked; waits."""
    found = _are_finite(gradient)
    with own_operations():
        return found is not None and not bool(found)


def first_not_finite(
    models: Iterable[tuple[torch.nn.Module, str]],
) -> weakref.ref[torch.Tensor] | None:
    """A parameter of which the gradient is not finite, of those that are looked at. Waits once."""
    looked_at = 0
    asked: list[tuple[torch.Tensor, torch.Tensor]] = []
    for model, _ in models:
        for parameter in model.parameters():
            if parameter.grad is None or looked_at >= _MOST_LOOKED_AT:
                continue
            if parameter.numel() > _LARGE:
                continue
            looked_at += 1
            found = _are_finite(parameter.grad)
            if found is not None:
                asked.append((parameter, found))
    answers = brought([found for _, found in asked])
    with own_operations():
        for (parameter, _), are_finite in zip(asked, answers, strict=True):
            if not are_finite:
                return weakref.ref(parameter)
    return None


def _parameters_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    return [p for group in optimizer.param_groups for p in group["params"]]


class _Kept:
    """A gradient as a backward pass left it."""

    def __init__(
        self, tensor_id: int, parameter: torch.Tensor, gradient: torch.Tensor, after: int
    ) -> None:
        self.tensor_id = tensor_id
        self.copy = local_part(gradient.detach()).clone()
        self._parameter: weakref.ref[Any] = weakref.ref(parameter)
        self._gradient: weakref.ref[Any] = weakref.ref(gradient)
        self._version = version_of(gradient)
        self._pass = after

    def changed(self, after: int) -> None:
        """The gradient was unscaled or clipped, when `after` backward passes had begun."""
        parameter = self._parameter()
        gradient = None if parameter is None else parameter.grad
        if gradient is not None:
            self._gradient = weakref.ref(gradient)  # perhaps another one: what is sparse is summed
            self._version, self._pass = version_of(gradient), after

    def is_of(self, parameter: torch.Tensor, after: int) -> bool:
        """Whether what `parameter` has now came of it, when `after` backward passes have begun.

        One that began since, perhaps for other parameters, has raised the version of what it added
        to. Without one, whatever was written into the gradient was done to it.
        """
        gradient = parameter.grad
        if gradient is None:
            return False
        version = version_of(gradient)
        if self._gradient() is not gradient or self._parameter() is not parameter:
            return False
        return self._pass == after or self._version == version

    def is_in_force(self, after: int) -> bool:
        """The same of the parameter that it was kept for."""
        parameter = self._parameter()
        return parameter is not None and self.is_of(parameter, after)


class _Norm:
    """A norm, of what it is, and after which backward pass it was found."""

    def __init__(self, of: frozenset[int], kept: list[_Kept], value: Any, after: int) -> None:
        self.of = of  # ids of parameters
        self.value = value
        self._kept = kept
        self._pass = after

    def is_in_force(self, after: int) -> bool:
        if self._pass == after:
            return True
        return bool(self._kept) and all(kept.is_in_force(after) for kept in self._kept)


class GradientObserver:
    """Looks at gradients between backward and the optimizer's step. One per recording."""

    def __init__(self, taker: Taker, watched: Models) -> None:
        self._taker = taker
        self._watched = watched
        self._pass = 0  # how many backward passes began
        self._kept: dict[int, _Kept] = {}  # by the parameter's id
        self._norms: list[_Norm] = []
        self._scale: torch.Tensor | None = None

    def backward_begins(self) -> None:
        """What was kept is out of date where the pass changes a gradient."""
        self._pass += 1

    def will_change(self, parameters: Iterable[Any]) -> None:
        """Keeps the gradients of parameters of watched models, where no earlier call has."""
        owners = self._watched.owners()
        with own_operations():
            for parameter in parameters:
                owner, gradient = owners.get(id(parameter)), getattr(parameter, "grad", None)
                if owner is None or not isinstance(gradient, torch.Tensor):
                    continue
                kept = self._kept.get(id(parameter))
                if kept is not None and kept.is_of(parameter, self._pass):
                    continue
                if capturing_graph(gradient):
                    self._kept.pop(id(parameter), None)
                    continue
                tensor_id = self._id(owner, gradient)
                self._kept[id(parameter)] = _Kept(tensor_id, parameter, gradient, self._pass)

    def changed(self, parameters: Iterable[Any], norm: Any = None) -> None:
        """The gradients were unscaled or clipped; `norm` is that of all of them, if it is known."""
        of = frozenset(map(id, parameters))
        kept = [self._kept[key] for key in of if key in self._kept]
        for one in kept:
            one.changed(self._pass)
        if norm is not None:
            self._norms = [known for known in self._norms if known.is_in_force(self._pass)]
            self._norms.append(_Norm(of, kept, norm, self._pass))

    def unscales(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        """A GradScaler is about to divide the optimizer's gradients by its scale."""
        self._scale = getattr(scaler, "_scale", None)
        self.will_change(_parameters_of(optimizer))

    def unscaled(self, optimizer: torch.optim.Optimizer) -> None:
        """It did."""
        self.changed(_parameters_of(optimizer))

    def stepped(self, optimizer: torch.optim.Optimizer) -> None:
        """Drops what was kept of the optimizer's parameters, also after `will_step` (L-BFGS)."""
        if self._kept or self._norms:
            owned = {id(p) for p in _parameters_of(optimizer)}
            for key in owned:
                self._kept.pop(key, None)
            self._norms = [norm for norm in self._norms if owned.isdisjoint(norm.of)]

    def clear(self) -> None:
        """Drops all that was kept: nothing is going to be taken."""
        self._kept.clear()
        self._norms.clear()
        self._scale = None

    def will_step(self, optimizer: torch.optim.Optimizer, table: Parameters) -> None:
        """Takes what backward left for the optimizer, and what was done to it."""
        ids: list[int] = []
        gradients: list[torch.Tensor] = []
        owned = {id(p) for p in _parameters_of(optimizer)}
        norms = [norm for norm in self._norms if norm.is_in_force(self._pass)]
        for parameter, owner in zip(table.values, table.owners, strict=True):
            # The table may hold what another optimizer owns, which has yet to step.
            take = self._kept.pop if id(parameter) in owned else self._kept.get
            kept = take(id(parameter), None)
            if kept is not None and kept.is_of(parameter, self._pass):
                ids.append(kept.tensor_id)
                gradients.append(kept.copy)
            elif parameter.grad is not None:
                ids.append(self._id(owner, parameter.grad))
                gradients.append(parameter.grad)
        if gradients:
            self._taker.take_batch(ids, gradients)
        self._norms = [norm for norm in norms if owned.isdisjoint(norm.of)]
        self._take_numbers(optimizer, [norm for norm in norms if not owned.isdisjoint(norm.of)])

    def _id(self, owner: Owner, gradient: torch.Tensor) -> int:
        name = f"gradient_before/{owner.path}"
        return self._taker.tensor_id(name, "gradient_before", gradient, owner)

    def _take_numbers(self, optimizer: torch.optim.Optimizer, norms: list[_Norm]) -> None:
        for number, norm in enumerate(norms, 1):
            found = norm.value
            value = found if isinstance(found, (int, float)) else whole_here(found)
            self._take_number("total_norm" + (f"#{number}" if number > 1 else ""), value)
        scale = scale_of(optimizer)
        self._take_number("loss_scale", self._scale if scale is None else scale)
        self._scale = None

    def _take_number(self, name: str, value: Any) -> None:
        if value is not None:
            name = f"gradient_before/{name}"
            self._taker.take_number(
                self._taker.tensor_id(name, "gradient_before", None, None), value
            )
