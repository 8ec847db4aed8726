"""What an optimizer's step does: its state afterwards, its learning rates, the weights' updates.

Only at steps that need it. Before the step the parameters that the optimizer owns are copied, in
host memory by the native session, on a device by PyTorch; after it they are compared with what they
are then, and the copies are given back.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph, own_operations
from traindbg.hooks.torch.base.shards import local_part
from traindbg.hooks.torch.updates.gradients import scale_of, take_scaled

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.parameters import Owner, Parameters

_TRAIN = _core.TRAIN
STATE = _core.ROLE_BITS["optimizer_state"]
UPDATES = _core.ROLE_BITS["weight_update"]
_PARAMETERS = _core.ROLE_BITS["weight"] | _core.ROLE_BITS["bias"]
_GRADIENTS = _core.ROLE_BITS["gradient"]
_NUMBERS = frozenset({"step", "eta", "mu", "mu_product"})  # in states of PyTorch's optimizers


class Taker(Protocol):
    """Who registers and takes tensors (`base.tensors`)."""

    session: _core.Session
    on_device_only: bool

    def tensor_id(
        self, name: str, role: str, tensor: torch.Tensor | None, owner: Owner | None
    ) -> int: ...
    def take_batch(
        self, ids: list[int], tensors: list[torch.Tensor] | list[torch.Tensor | None]
    ) -> None: ...
    def take_number(self, tensor_id: int, value: Any) -> None: ...
    def take_update(
        self, update_id: int, ratio_id: int, before: torch.Tensor, after: torch.Tensor
    ) -> None: ...


class _Before:
    """The parameters that an optimizer is about to change."""

    def __init__(self, parameters: list[torch.nn.Parameter], owners: list[Owner]) -> None:
        self.parameters = parameters
        self.owners = owners
        self.copies: _core.CopiedTensors | None = None
        self.clones: dict[int, torch.Tensor] = {}  # by position, of those on a device


def _owned(
    optimizer: torch.optim.Optimizer, table: Parameters
) -> Iterator[tuple[torch.nn.Parameter, Owner]]:
    """The parameters of watched models that the optimizer holds, each once."""
    owned = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for parameter, owner in zip(table.values, table.owners, strict=True):
        if id(parameter) in owned:
            owned.discard(id(parameter))
            yield parameter, owner


def _is_kept_of(parameter: torch.Tensor, key: Any, value: torch.Tensor) -> bool:
    """Whether it is a value for each element, row or column (Adafactor) of a parameter."""
    if value.shape == parameter.shape:
        return value.dim() > 0 or key not in _NUMBERS
    return value.dim() == parameter.dim() and all(
        size in (1, whole) for size, whole in zip(value.shape, parameter.shape, strict=True)
    )


def _was_skipped(optimizer: torch.optim.Optimizer) -> bool:
    """Whether a fused optimizer, told of infinite gradients by a GradScaler, left all as it was."""
    found = getattr(optimizer, "found_inf", None)
    if not isinstance(found, torch.Tensor) or found.numel() != 1 or capturing_graph(found):
        return False
    return bool(found.item())


class OptimizerObserver:
    """Looks at optimizers before and after their steps. One per recording."""

    def __init__(self, taker: Taker) -> None:
        self._taker = taker
        self._before: weakref.WeakKeyDictionary[torch.optim.Optimizer, _Before] = (
            weakref.WeakKeyDictionary()
        )
        self._numbers: weakref.WeakKeyDictionary[torch.optim.Optimizer, int] = (
            weakref.WeakKeyDictionary()
        )

    def take_parameters(
        self, optimizer: torch.optim.Optimizer, table: Parameters, due: int
    ) -> None:
        """Takes parameters and gradients as the optimizer is about to use them."""
        tensors: list[torch.Tensor | None] = []
        ids: list[int] = []
        if due & _PARAMETERS:
            tensors += table.values
            ids += table.weight_ids
        if due & _GRADIENTS:
            gradients = [parameter.grad for parameter in table.values]
            scale = scale_of(optimizer)
            if scale is not None:
                take_scaled(self._taker, table.gradient_ids, gradients, scale)
            else:
                tensors += gradients
                ids += table.gradient_ids
        if tensors:
            self._taker.take_batch(ids, tensors)

    def will_step(self, optimizer: torch.optim.Optimizer, table: Parameters) -> None:
        """Keeps what the step is about to change, for a step that needs updates."""
        self._before.pop(optimizer, None)  # of a step that raised
        trained = [pair for pair in _owned(optimizer, table) if pair[0].requires_grad]
        before = _Before([p for p, _ in trained], [owner for _, owner in trained])
        if self._taker.on_device_only:
            elsewhere = list(range(len(trained)))
        else:
            before.copies = self._taker.session.copy(before.parameters)
            elsewhere = before.copies.on_device
        with own_operations():
            for position in elsewhere:
                parameter = before.parameters[position]
                if not capturing_graph(parameter):
                    before.clones[position] = local_part(parameter.detach()).clone()
        self._before[optimizer] = before

    def stepped(self, optimizer: torch.optim.Optimizer, table: Parameters, due: int) -> None:
        """Takes what the step did."""
        before = self._before.pop(optimizer, None)
        if _was_skipped(optimizer):
            return
        if due & STATE:
            self._take_rates(optimizer)
            self._take_state(optimizer, table)
        if before is not None and due & UPDATES:
            self._take_updates(before)

    def clear(self) -> None:
        """Drops what was kept: nothing is going to be taken."""
        self._before.clear()

    def _take_rates(self, optimizer: torch.optim.Optimizer) -> None:
        which = self._numbers.get(optimizer)
        if which is None:
            taken = set(self._numbers.values())
            which = self._numbers[optimizer] = next(n for n in range(1, 1 << 30) if n not in taken)
        mark = "" if which == 1 else f"#{which}"
        for number, group in enumerate(optimizer.param_groups):
            rate = group.get("lr")
            if isinstance(rate, (int, float, torch.Tensor)):
                name = f"optimizer_state/lr{mark}.{number}"
                self._taker.take_number(
                    self._taker.tensor_id(name, "optimizer_state", None, None), rate
                )

    def _take_state(self, optimizer: torch.optim.Optimizer, table: Parameters) -> None:
        ids: list[int] = []
        tensors: list[torch.Tensor] = []
        for parameter, owner in _owned(optimizer, table):
            state = optimizer.state.get(parameter)  # asking by [] would make one
            if not isinstance(state, Mapping):
                continue
            for key, value in state.items():
                if isinstance(value, torch.Tensor) and _is_kept_of(parameter, key, value):
                    name = f"optimizer_state/{owner.path}.{key}"
                    ids.append(self._taker.tensor_id(name, "optimizer_state", value, owner))
                    tensors.append(value)
        if tensors:
            self._taker.take_batch(ids, tensors)

    def _take_updates(self, before: _Before) -> None:
        taker = self._taker
        updates, ratios = [], []
        for parameter, owner in zip(before.parameters, before.owners, strict=True):
            name = f"weight_update/{owner.path}"
            updates.append(taker.tensor_id(name, "weight_update", parameter, owner))
            ratios.append(
                taker.tensor_id(f"update_ratio/{owner.path}", "weight_update", None, owner)
            )
        if before.copies is not None:
            taker.session.observe_updates(_TRAIN, updates, ratios, before.copies, before.parameters)
        for position, clone in before.clones.items():
            after = local_part(before.parameters[position].detach())
            if after.shape == clone.shape:
                taker.take_update(updates[position], ratios[position], clone, after)
