"""Names the tensors of a recording and hands them to its native session, which decides and reduces.

What cannot be read where it lies waits on its device until the step ends (`base.device`).
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import Deferred
from traindbg.hooks.torch.base.later import Later
from traindbg.hooks.torch.base.parameters import shape_of, word_of
from traindbg.hooks.torch.base.shards import local_part, shard_facts

if TYPE_CHECKING:
    from traindbg.hooks.torch.base.parameters import Owner
    from traindbg.hooks.torch.recording.forward import Place

_TRAIN = _core.TRAIN
_EVAL = _core.EVAL
_OF_FIXED_SHAPE = frozenset(
    {"weight", "bias", "gradient", "gradient_before", "optimizer_state", "weight_update"}
)
_REASON_MAX = 500  # characters
_PLACES_MAX = 4  # names of places that a fact about the loop may have; those after it have the last


def _sizes_of(tensor: torch.Tensor) -> list[int]:
    """Its shape; 0 for what is no number, such as the ragged dimension of a nested tensor."""
    return [size if type(size) is int else 0 for size in shape_of(tensor)]


class Tensors:
    """One per recording. Owns the ids by which the session knows what has a name."""

    def __init__(self, session: _core.Session, hot: _core.HotPath) -> None:
        self.session = session
        self.deferred = Deferred(session)
        self.later = Later(self.deferred, hot)
        self.is_over = False  # the training is: facts are kept, although none is due
        self.on_device_only = os.environ.get("TRAINDBG_DEVICE_PATH") == "1"
        self._hot = hot
        self._ids: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}  # by the names of parameters and gradients
        self._places: dict[str, dict[str, int]] = {}  # of facts about the loop: ids by place

    def knows(self, name: str) -> bool:
        """Whether a tensor of that name was met."""
        return name in self._ids

    def id_of(
        self,
        name: str,
        role: str,
        tensor: torch.Tensor | None = None,
        *,
        activation: str = "none",
        module: str = "",
        module_type: str = "",
        layer: int = -1,
        always: bool = False,
    ) -> int:
        """The id of what has a name; the first time it is registered, with what is known of it."""
        if role in _OF_FIXED_SHAPE and tensor is not None:
            name = self._name_for_shape(name, role, shape_of(tensor))
        known = self._ids.get(name)
        if known is None:
            known = self._ids[name] = self.session.register_tensor(
                name,
                role,
                activation=activation,
                module=module,
                module_type=module_type,
                layer=layer,
                dtype="" if tensor is None else word_of(tensor.dtype),
                shape=[] if tensor is None else _sizes_of(local_part(tensor)),
                **({} if tensor is None else shard_facts(tensor)),
                always=always,
            )
        return known

    def id_of_shape(self, name: str, role: str, shape: tuple[int, ...]) -> int:
        """The id of a number that is about something of that shape."""
        known = self._ids.get(name)
        if known is None:
            known = self._ids[name] = self.session.register_tensor(name, role, shape=list(shape))
        return known

    def tensor_id(
        self, name: str, role: str, tensor: torch.Tensor | None, owner: Owner | None
    ) -> int:
        """The id of what belongs to a parameter; without a tensor, where it was met before."""
        if tensor is None and name in self._ids:
            return self._ids[name]
        facts = {} if owner is None else owner._asdict()
        facts.pop("path", None)
        return self.id_of(name, role, tensor, **facts)

    def place_id(self, name: str, role: str, place: Place, kind: str, tensor: torch.Tensor) -> int:
        """The id of what a module was given or returned; `kind`: of activation."""
        known = place.ids.get(name)
        if known is None:
            known = place.ids[name] = self.id_of(
                name,
                role,
                tensor,
                activation=kind,
                module=place.name,
                module_type=place.module_type,
                layer=place.layer,
            )
        return known

    def _name_for_shape(self, name: str, role: str, shape: tuple[int, ...]) -> str:
        """`name`, or `name#2` and so on where tensors of other shapes had the names before.

        So the values of a module that was replaced are not mixed with those of its successor.
        """
        number, wanted = 1, name
        while self._shapes.setdefault(wanted, shape) != shape:
            number += 1
            wanted = f"{name}#{number}"
        if number > 1 and wanted not in self._ids and role in ("weight", "bias"):
            facts = {"tensor": wanted, "instead_of": name, "step": self._hot.steps}
            self.session.event("tensor_replaced", json.dumps(facts | {"shape": list(shape)}))
        return wanted

    def cannot_describe(self, name: str, error: Exception) -> None:
        """Something that has that name is no tensor as others are; called once."""
        self.session.skip()
        reason = f"{type(error).__name__}: {error}"[:_REASON_MAX]
        self.session.event("tensor_skipped", json.dumps({"tensor": name, "reason": reason}))

    def take(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> None:
        """Takes what is due of a tensor."""
        if self.on_device_only or not self.session.observe(mode, tensor_id, tensor):
            self._hot.has_deferred |= self.deferred.add_tensor(mode, tensor_id, tensor)

    def take_scalar(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> None:
        """Takes the value of a tensor with one element."""
        if self.on_device_only or not self.session.observe_scalar_tensor(mode, tensor_id, tensor):
            self._hot.has_deferred |= self.deferred.add_scalar(mode, tensor_id, tensor)

    def take_batch(
        self, ids: list[int], tensors: list[torch.Tensor] | list[torch.Tensor | None]
    ) -> None:
        """Takes tensors of the step under way; None is one that is not there."""
        if self.on_device_only:
            elsewhere = list(range(len(tensors)))
        else:
            elsewhere = self.session.observe_batch(_TRAIN, ids, tensors)
        if elsewhere:
            self._hot.has_deferred |= self.deferred.add_batch(_TRAIN, ids, tensors, elsewhere)

    def take_number(self, tensor_id: int, value: float | torch.Tensor) -> None:
        """Takes a number of the step under way, or a tensor of one."""
        if not isinstance(value, torch.Tensor):
            self.session.observe_scalar(_TRAIN, tensor_id, float(value))
        elif value.numel() == 1:
            self.take_scalar(_TRAIN, tensor_id, value)

    def take_update(
        self, update_id: int, ratio_id: int, before: torch.Tensor, after: torch.Tensor
    ) -> None:
        """Takes what a step did to a parameter on a device."""
        is_here = self.deferred.add_update(_TRAIN, update_id, ratio_id, before, after)
        self._hot.has_deferred |= is_here

    def take_classes(
        self, mode: int, tensor_id: int, logits: torch.Tensor, labels: torch.Tensor
    ) -> None:
        """Takes labels, predictions and hits of each class."""
        if self.on_device_only or not self.session.observe_classes(mode, tensor_id, logits, labels):
            self.deferred.add_classes(mode, tensor_id, logits, labels)
            self._hot.has_deferred = True

    # Facts about the loop.

    def tell(self, name: str, value: float | torch.Tensor, always: bool = False) -> None:
        """A number of the step under way, or a tensor of one; `always`: also where none is due."""
        self.take_number(self.id_of(f"loop/{name}", "loop", always=always), value)

    def fact(
        self,
        name: str,
        value: float | torch.Tensor,
        place: str = "",
        evaluation: bool = False,
    ) -> None:
        """A number of the step under way, or a tensor of one.

        `place`: of which module or parameter, say.
        """
        ids = self._places.setdefault(name, {})
        known = None if self.is_over else ids.get(place)
        if known is None:
            if place and len(ids) > _PLACES_MAX:
                known = ids[next(reversed(ids))]
            else:
                full = f"loop/{name}/{place}" if place else f"loop/{name}"
                known = ids[place] = self._id_of_fact(full, place)
        mode, tensor_id = _EVAL if evaluation else _TRAIN, known
        if not isinstance(value, torch.Tensor):
            self.session.observe_scalar(mode, tensor_id, float(value))
            return

        def told(values: list[float]) -> None:
            self.session.observe_scalar(mode, tensor_id, values[0])

        self.later.ask_numbers("loop", [value], told)

    def _id_of_fact(self, name: str, place: str) -> int:
        if self.is_over:  # registered again, it is kept although nothing is due
            return self.session.register_tensor(name, "loop", module=place, always=True)
        return self.id_of(name, "loop", module=place)
