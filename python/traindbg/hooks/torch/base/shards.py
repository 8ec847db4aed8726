"""What is known of distributed tensors without asking another process.

Nothing here makes a collective call: a debugger must not be able to make the ranks of a training
wait for each other. A tensor that is distributed (`DTensor`) stands for the part of this process.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

import torch
import torch.distributed

from traindbg import _core


def _is_initialized() -> bool:
    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def rank_of_process() -> int:
    """The rank in the training, as far as it is known by now; 0 where there are no ranks."""
    if _is_initialized():
        return int(torch.distributed.get_rank())
    rank = os.environ.get("RANK", "0")
    return int(rank) if rank.isdigit() else 0


def world_of_process() -> dict[str, str]:
    """RANK and WORLD_SIZE as the process group has them; nothing where there is none."""
    if not _is_initialized():
        return {}
    size = torch.distributed.get_world_size()
    return {"RANK": str(torch.distributed.get_rank()), "WORLD_SIZE": str(size)}


class Wrappers:
    """Which modules keep the ranks' copies of a model alike; of the process. Keeps none alive.

    Those that are made while somebody listens are heard of. For those that were there before, all
    objects of the process are looked through: once for a model, a hundredth of a second or some.
    """

    def __init__(self) -> None:
        self._known: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._searched: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()

    def clear(self) -> None:
        """Forgets all."""
        self._known.clear()
        self._searched.clear()

    def made(self, module: torch.nn.Module) -> None:
        """A part or parameter of `module` was registered."""
        if isinstance(module, torch.nn.parallel.DistributedDataParallel):
            self._known.add(module)

    def of(self, model: torch.nn.Module | None) -> dict[str, str]:
        """What keeps the ranks' copies of a model alike, as a fact under `data_parallel`.

        Found also where the training calls the model inside and not the wrapper, which then
        averages nothing. One that was given a communication hook may leave gradients as they are
        (local SGD).
        """
        if model is None or not _is_initialized() or torch.distributed.get_world_size() < 2:
            return {}
        kind = torch.nn.parallel.DistributedDataParallel
        if model not in self._searched:
            self._searched.add(model)
            self._known.update(_core.instances_of(kind))
        mine = {id(parameter) for parameter in model.parameters()}
        for wrapper in list(self._known):
            if wrapper.__dict__.get("_comm_hooks"):
                continue
            inner = wrapper.__dict__.get("_modules", {}).get("module")  # none if it was refused
            if inner is not None and any(id(each) in mine for each in inner.parameters()):
                return {"data_parallel": kind.__name__}
        return {}


wrappers = Wrappers()


def agreed(key: str, value: str) -> tuple[str, bool]:
    """What the first rank that asked has said, and whether it is this one.

    Nobody waits for another rank: the store of the process group is asked, once.
    """
    if not _is_initialized():
        return value, True
    rank = str(torch.distributed.get_rank())
    store = torch.distributed.distributed_c10d._get_default_store()
    found: bytes = store.compare_set(f"traindbg/{key}", "", f"{rank} {value}")
    first, said = found.decode().split(" ", 1)
    return said, first == rank


def is_distributed(tensor: torch.Tensor) -> bool:
    """Whether it is a `DTensor`."""
    return type(tensor) is not torch.Tensor and hasattr(tensor, "_local_tensor")


def local_part(tensor: torch.Tensor) -> torch.Tensor:
    """Of a distributed tensor the part of this process; any other tensor as it is."""
    part = tensor._local_tensor if is_distributed(tensor) else tensor
    wait = getattr(part, "trigger_wait", None)  # a collective call that the training has begun
    return part if wait is None else wait()


def whole_here(tensor: Any) -> torch.Tensor | None:
    """A distributed tensor as a plain one where all of it is in this process, any other as it is.

    None for what is no tensor, and where there is only a part.
    """
    if not isinstance(tensor, torch.Tensor):
        return None
    if not is_distributed(tensor):
        return tensor
    is_whole = all(placement.is_replicate() for placement in tensor.placements)
    return local_part(tensor) if is_whole else None


def has_values(tensor: Any) -> bool:
    """Whether it is a tensor whose memory can be read, so that its class is PyTorch's own.

    Or one that is derived from it and has the operations of it. Those with a dispatch of their own
    may have no values: fake tensors of a compiler, functional ones.
    """
    kind = type(tensor)
    if kind is torch.Tensor:
        return True
    plain = torch.Tensor.__torch_dispatch__
    return issubclass(kind, torch.Tensor) and kind.__torch_dispatch__ is plain


def _word(placement: Any) -> str:
    if placement.is_replicate():
        return "replicate"
    if placement.is_partial():
        return f"partial({placement.reduce_op})"
    # Also kinds of shards that are cut another way than `Shard` is.
    name = type(placement).__name__.removeprefix("_").lower()
    return f"{name}({placement.dim})" if hasattr(placement, "dim") else name


def shard_facts(tensor: torch.Tensor) -> dict[str, Any]:
    """The facts of a tensor's description that only a distributed one has."""
    if not is_distributed(tensor):
        return {}
    facts = {
        "whole_shape": list(tensor.shape),
        "placement": ",".join(_word(placement) for placement in tensor.placements),
    }
    try:
        from torch.distributed.tensor._utils import compute_local_shape_and_global_offset

        shape, offset = compute_local_shape_and_global_offset(
            tensor.shape, tensor.device_mesh, tensor.placements
        )
    except Exception:  # no promise of PyTorch's; the offset is not known then
        return facts
    if tuple(shape) == tuple(tensor._local_tensor.shape):
        facts["offset"] = list(offset)
    return facts
