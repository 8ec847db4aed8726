"""Gradients as backward left them, before they are unscaled and clipped, and what was done to them.

Only at steps that need it. The first of `GradScaler.unscale_`, `clip_grad_norm_` and
`clip_grad_value_` after a backward pass finds them so: they are copied then, and taken when the
optimizer steps, because a step may still be skipped. Where none of them was called, they are what
the optimizer uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch

from traindbg import _core
from traindbg.hooks.torch_device import capturing_graph
from traindbg.hooks.torch_shards import local_part, whole_here

if TYPE_CHECKING:
    from collections.abc import Iterable

    from traindbg.hooks.torch_parameters import Owner, Parameters

GRADIENTS_BEFORE = _core.ROLE_BITS["gradient_before"]


class Taker(Protocol):
    """Who registers and takes tensors, and knows the watched models (the recording)."""

    def tensor_id(
        self, name: str, role: str, tensor: torch.Tensor | None, owner: Owner | None
    ) -> int: ...
    def take_batch(self, ids: list[int], tensors: list[torch.Tensor]) -> None: ...
    def take_number(self, tensor_id: int, value: Any) -> None: ...
    def owners(self) -> dict[int, Owner]: ...


def scale_of(optimizer: torch.optim.Optimizer) -> torch.Tensor | None:
    """What the gradients are still multiplied with when the optimizer steps; None for nothing.

    A fused optimizer is told of a GradScaler's scale and divides by it in its own code.
    """
    scale = getattr(optimizer, "grad_scale", None)
    return scale if isinstance(scale, torch.Tensor) and scale.numel() == 1 else None


def take_scaled(
    taker: Taker, ids: list[int], gradients: list[torch.Tensor], scale: torch.Tensor
) -> None:
    """Takes the gradients as they are after a division by `scale`, one after the other."""
    with torch.no_grad():
        for tensor_id, gradient in zip(ids, gradients, strict=True):
            part = local_part(gradient.detach())
            if not capturing_graph(part):
                taker.take_batch([tensor_id], [part / scale.to(part.device)])


class GradientObserver:
    """Looks at gradients between backward and the optimizer's step. One per recording."""

    def __init__(self, taker: Taker) -> None:
        self._taker = taker
        self._pass = 0  # how many backward passes began
        # By the parameter's id: the tensor's id, a copy, and after which pass it was made.
        self._kept: dict[int, tuple[int, torch.Tensor, int]] = {}
        self._norms: list[tuple[frozenset[int], Any, int]] = []
        self._scale: torch.Tensor | None = None

    def backward_begins(self) -> None:
        """What was kept is out of date: the gradients are about to change."""
        self._pass += 1

    def will_change(self, parameters: Iterable[Any]) -> None:
        """Keeps the gradients of parameters of watched models, where no earlier call has."""
        owners = self._taker.owners()
        with torch.no_grad():
            for parameter in parameters:
                owner, gradient = owners.get(id(parameter)), getattr(parameter, "grad", None)
                if owner is None or not isinstance(gradient, torch.Tensor):
                    continue
                kept = self._kept.get(id(parameter))
                if (kept is not None and kept[2] == self._pass) or capturing_graph(gradient):
                    continue
                copy = local_part(gradient.detach()).clone()
                self._kept[id(parameter)] = (self._id(owner, gradient), copy, self._pass)

    def clipped(self, parameters: Iterable[Any], norm: Any) -> None:
        """`clip_grad_norm_` found the norm `norm` of the gradients of all of these."""
        self._norms.append((frozenset(map(id, parameters)), norm, self._pass))

    def unscales(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None:
        """A GradScaler is about to divide the optimizer's gradients by its scale."""
        self._scale = getattr(scaler, "_scale", None)
        self.will_change(p for group in optimizer.param_groups for p in group["params"])

    def will_step(self, optimizer: torch.optim.Optimizer, table: Parameters) -> None:
        """Takes what backward left for the optimizer, and what was done to it."""
        ids: list[int] = []
        gradients: list[torch.Tensor] = []
        for parameter, owner in zip(table.values, table.owners, strict=True):
            kept = self._kept.pop(id(parameter), None)
            if kept is not None and kept[2] == self._pass:
                ids.append(kept[0])
                gradients.append(kept[1])
            elif parameter.grad is not None:
                ids.append(self._id(owner, parameter.grad))
                gradients.append(parameter.grad)
        if gradients:
            self._taker.take_batch(ids, gradients)
        self._take_numbers(optimizer)

    def _id(self, owner: Owner, gradient: torch.Tensor) -> int:
        name = f"gradient_before/{owner.path}"
        return self._taker.tensor_id(name, "gradient_before", gradient, owner)

    def _take_numbers(self, optimizer: torch.optim.Optimizer) -> None:
        owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
        known = [entry for entry in self._norms if entry[2] == self._pass]
        self._norms = [entry for entry in known if owned.isdisjoint(entry[0])]
        norms = [norm for of, norm, _ in known if not owned.isdisjoint(of)]
        for number, norm in enumerate(norms, 1):
            value = norm if isinstance(norm, (int, float)) else whole_here(norm)
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
