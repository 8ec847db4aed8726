"""Statistics of tensors that live on a device, taken there, and of sparse ones.

Nothing waits for the device while the step runs: each tensor leaves one small vector on it, and
all vectors of a step come over in one copy when the step ends.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

import torch
from torch.utils._python_dispatch import _disable_current_modes

from traindbg import _core
from traindbg.hooks.torch_shards import local_part

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traindbg._core import Session

_FIELDS = 11


@contextlib.contextmanager
def own_operations() -> Iterator[None]:
    """Operations of ours run in it: without gradients, and unheard by the training's modes.

    A dispatch mode hears every operation. Selective checkpointing numbers them to find in the
    backward pass what it kept, and a counter of FLOPs adds them up.
    """
    with torch.no_grad():
        if torch._C._len_torch_dispatch_stack() == 0:
            yield
        else:
            with _disable_current_modes():
                yield


def statistics_vector(tensor: torch.Tensor) -> torch.Tensor:
    """The fields of `_core.Statistics` in their order, as a vector of 11 on the tensor's device.

    Moments are over the finite elements; float64 sums, except on devices that have none. The
    tensor has at least one element and a real or integer type.
    """
    wide = torch.float32 if tensor.device.type == "mps" else torch.float64
    x = tensor.detach().reshape(-1)
    if not x.dtype.is_floating_point or x.element_size() < 4:
        x = x.to(torch.float32 if x.dtype.is_floating_point else wide)
    finite = torch.isfinite(x)
    known = torch.where(finite, x, 0)
    number = finite.sum().to(wide)
    at_least_one = number.clamp(min=1)
    mean = known.sum(dtype=wide) / at_least_one
    spread = torch.where(finite, x - mean.to(x.dtype), 0)
    any_finite = number > 0
    return torch.stack(
        [
            torch.full_like(number, x.numel()),
            torch.isnan(x).sum().to(wide),
            torch.isposinf(x).sum().to(wide),
            torch.isneginf(x).sum().to(wide),
            (x == 0).sum().to(wide),
            torch.where(any_finite, torch.where(finite, x, torch.inf).min().to(wide), 0),
            torch.where(any_finite, torch.where(finite, x, -torch.inf).max().to(wide), 0),
            mean,
            torch.linalg.vector_norm(spread, 2, dtype=wide) / at_least_one.sqrt(),
            torch.linalg.vector_norm(known, 1, dtype=wide),
            torch.linalg.vector_norm(known, 2, dtype=wide),
        ]
    )


def sparse_statistics_vector(tensor: torch.Tensor) -> torch.Tensor:
    """The same of a sparse tensor (indices and values); what is not there is 0."""
    values = tensor.detach().coalesce().values()
    rest = tensor.numel() - values.numel()
    if rest == 0:
        return statistics_vector(values)
    if values.numel() == 0:
        values = values.new_zeros(1)
        rest -= 1
    vector = statistics_vector(values)
    count, nan, above, below, zero, least, most, mean, std, l1, l2 = vector.unbind()
    finite = count - nan - above - below
    whole = finite + rest
    spread = finite * std.square() + mean.square() * (finite * rest / whole)
    return torch.stack(
        [
            count + rest,
            nan,
            above,
            below,
            zero + rest,
            least.clamp(max=0) if rest else least,
            most.clamp(min=0) if rest else most,
            mean * (finite / whole),
            (spread / whole).sqrt(),
            l1,
            l2,
        ]
    )


def capturing_graph(tensor: torch.Tensor) -> bool:
    """Whether what is done with the tensor now would become part of a CUDA graph."""
    return bool(tensor.is_cuda and torch.cuda.is_current_stream_capturing())


class Deferred:
    """What is still on devices of the step under way. One thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._vectors: list[tuple[int, int, torch.Tensor]] = []
        self._scalars: list[tuple[int, int, torch.Tensor]] = []
        self._ratios: set[int] = set()  # ids of numbers that are left out where they are not finite

    def add_tensor(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> None:
        """Takes its statistics; the tensor may change afterwards."""
        tensor = local_part(tensor)
        is_sparse = tensor.layout is torch.sparse_coo
        is_known = is_sparse or tensor.layout is torch.strided
        if tensor.is_complex() or not is_known or capturing_graph(tensor):
            self._session.skip()
        elif tensor.numel() == 0:
            self._session.observe_statistics(mode, tensor_id, _core.Statistics())
        else:
            with own_operations():
                make = sparse_statistics_vector if is_sparse else statistics_vector
                self._vectors.append((mode, tensor_id, make(tensor)))

    def add_update(
        self,
        mode: int,
        update_id: int,
        ratio_id: int,
        before: torch.Tensor,
        after: torch.Tensor,
    ) -> None:
        """Takes the statistics of `after - before`, and how large that is beside `before`."""
        if after.is_complex() or after.layout is not torch.strided or capturing_graph(after):
            self._session.skip()
            return
        with own_operations():
            if before.dtype.is_floating_point and before.element_size() < 4:
                before, after = before.float(), after.float()
            difference = after - before
            self.add_tensor(mode, update_id, difference)
            if difference.numel() > 0:
                wide = torch.float32 if before.device.type == "mps" else torch.float64
                norms = [torch.linalg.vector_norm(x, dtype=wide) for x in (difference, before)]
                self._ratios.add(ratio_id)
                self.add_scalar(mode, ratio_id, norms[0] / norms[1])

    def add_scalar(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> None:
        """Takes the value of a tensor with one element."""
        tensor = local_part(tensor)
        if tensor.layout is not torch.strided or capturing_graph(tensor):
            self._session.skip()
        else:
            with own_operations():
                value = tensor.detach().reshape(1).clone()
            self._scalars.append((mode, tensor_id, value))

    def drain(self) -> None:
        """Brings everything over and hands it to the session. Waits for the device."""
        vectors, self._vectors = self._vectors, []
        scalars, self._scalars = self._scalars, []
        by_device: dict[torch.device, list[tuple[int, int, torch.Tensor]]] = {}
        for item in vectors + scalars:
            by_device.setdefault(item[2].device, []).append(item)
        for items in by_device.values():
            wide = torch.float32 if items[0][2].device.type == "mps" else torch.float64
            with own_operations():
                flat = torch.cat([vector.to(wide) for _, _, vector in items]).cpu().tolist()
            at = 0
            for mode, tensor_id, vector in items:
                size = vector.numel()
                values, at = flat[at : at + size], at + size
                if size == 1:
                    if tensor_id in self._ratios and not math.isfinite(values[0]):
                        continue
                    self._session.observe_scalar(mode, tensor_id, values[0])
                else:
                    counts = [int(value) for value in values[:5]]
                    self._session.observe_statistics(
                        mode, tensor_id, _core.Statistics(*counts, *values[5:_FIELDS])
                    )
