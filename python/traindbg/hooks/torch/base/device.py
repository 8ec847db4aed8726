"""Tensors that live on a device: statistics are taken there, all else of a copy in host memory.

Nothing waits for the device while the step runs. Of a dense tensor on a CUDA device the native
session takes the statistics, by a kernel of its own in the stream of the training. Where it cannot
(another kind of device, PyTorch before 2.10, no NVRTC), PyTorch's operations take them, some twenty
for each tensor, and leave one small vector on the device. Of one that is wanted whole, or for a
histogram and the like, a copy sets out for pinned host memory on a stream of its own, where the
native session reads it as any other. When the step ends there is one wait for all of it.
"""

from __future__ import annotations

import contextlib
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from traindbg import _core, _say
from traindbg.errors import TraindbgError
from traindbg.hooks.torch.base.shards import local_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from traindbg._core import Session

_FIELDS = 11  # of statistics; those of units come after them
_UNITS = _core.WHAT_BITS["units"]
_ON_DEVICE = _core.WHAT_BITS["statistics"] | _UNITS
_CHANNELS = _core.WHAT_BITS["channels"]
# What only rules want of a tensor beside its statistics.
_OF_RULES = _CHANNELS | _core.WHAT_BITS["digest"]
_MOST_CHANNELS = 65_536  # as the core has it
# Copies of at most so many bytes, and one tensor, are on their way at a time.
_MOST_BYTES = 256 << 20
# Up to here a copy for the host to reduce should take a GPU less time than its 40 launches would.
_SMALL_BYTES = 1 << 20
_MOST_ZEROS = 16  # for each value of a sparse tensor that is written out for rules
_CHANNEL_BYTES = 16 << 20


_TOO_LARGE = "it is sparse, and all of it would be too large to be written out"
_CAST_ON = ("cpu", "cuda", "mps", "xpu")


@contextlib.contextmanager
def _each_without_autocast() -> Iterator[None]:
    """As `_DisableAutocast`, which is not public; slower."""
    with contextlib.ExitStack() as stack:
        for device in _CAST_ON:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


_without_autocast: Callable[[], contextlib.AbstractContextManager[None]] = getattr(
    torch._C, "_DisableAutocast", _each_without_autocast
)
_may_be_cast: Callable[[], bool] = getattr(torch._C, "_is_any_autocast_enabled", lambda: True)


@contextlib.contextmanager
def _without_others() -> Iterator[None]:
    """Without autocast and dispatch modes."""
    with _without_autocast() if _may_be_cast() else contextlib.nullcontext():
        if torch._C._len_torch_dispatch_stack() == 0:
            yield
        else:
            with _disable_current_modes():
                yield


class own_operations:  # noqa: N801  (entered dozens of times in a step; a generator takes five times as long)
    """Operations of ours run in it: without gradients, and unheard by the training's modes.

    Autocast would compute them in fewer bits than they are given. A dispatch mode hears every
    operation. Selective checkpointing numbers them to find in the backward pass what it kept, and a
    counter of FLOPs adds them up. `torch.no_grad` is not used: it tells who waits for an evaluation
    (`evaluations.standby`).
    """

    __slots__ = ("_before", "_others")

    def __enter__(self) -> None:
        self._others: contextlib.AbstractContextManager[None] | None = None
        self._before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)
        if _may_be_cast() or torch._C._len_torch_dispatch_stack() != 0:
            try:
                others = _without_others()
                others.__enter__()
            except BaseException:
                torch._C._set_grad_enabled(self._before)
                raise
            self._others = others

    def __exit__(self, *error: Any) -> None:
        try:
            if self._others is not None:
                self._others.__exit__(*error)
        finally:
            torch._C._set_grad_enabled(self._before)


def widest_of(tensor: torch.Tensor) -> torch.dtype:
    """The widest real type that the tensor's device computes in."""
    return torch.float32 if tensor.device.type == "mps" else torch.float64


def statistics_vector(tensor: torch.Tensor) -> torch.Tensor:
    """The fields of `_core.Statistics` in their order, as a vector of 11 on the tensor's device.

    Moments are over the finite elements; float64 sums, except on devices that have none. The
    tensor has at least one element and a real or integer type.
    """
    wide = widest_of(tensor)
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


def units_vector(tensor: torch.Tensor, kind: str) -> torch.Tensor:
    """How many units an activation has, how many are inactive, how many elements are low and high.

    As `UnitStatistics` of the core. `tensor` has a floating type; `kind` is the function's.
    """
    axis = {0: None, 1: 0, 3: 2}.get(tensor.dim(), 1)
    units = 1 if axis is None else tensor.shape[axis]
    x = tensor.detach()
    if x.element_size() < 2:
        x = x.float()
    zero = torch.zeros((), dtype=torch.int64, device=x.device)
    inactive, low, high = zero, zero, zero
    if kind == "relu":
        active = x > 0
        active = (
            active.reshape(1, 1) if axis is None else active.movedim(axis, 0).reshape(units, -1)
        )
        inactive = (~active.any(dim=1)).sum()
    elif kind in ("tanh", "sigmoid"):
        low = (x < (-0.97 if kind == "tanh" else 0.03)).sum()
        high = (x > 0.97).sum()
    return torch.stack([torch.full_like(zero, units), inactive, low, high])


def channels_of(tensor: torch.Tensor, dimension: int) -> torch.Tensor:
    """Of each index of the dimension the least and largest finite element and the share of zeros.

    As `ChannelStatistics` of the core: float32 [3, channels], 0 where no element is finite. The
    tensor has at least one element and a floating type of at most 32 bits.
    """
    rows = tensor.detach().movedim(dimension, 0).reshape(tensor.shape[dimension], -1)
    # Some at a time: what is made of them in between is several times their size.
    together = max(1, _CHANNEL_BYTES // (4 * rows.shape[1]))
    return torch.cat([_extremes_of(part) for part in rows.split(together)], dim=1)


def _extremes_of(rows: torch.Tensor) -> torch.Tensor:
    rows = rows.float()
    finite = torch.isfinite(rows)
    known = finite.any(dim=1)
    least = torch.where(finite, rows, torch.inf).amin(dim=1)
    most = torch.where(finite, rows, -torch.inf).amax(dim=1)
    zeros = (rows == 0).sum(dim=1).to(widest_of(rows)) / rows.shape[1]
    return torch.stack([torch.where(known, least, 0), torch.where(known, most, 0), zeros.float()])


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


def version_of(tensor: torch.Tensor) -> int:
    """How often it was changed in place; 0 of inference tensors, which do not count that."""
    return 0 if tensor.is_inference() else tensor._version


def capturing_graph(tensor: torch.Tensor) -> bool:
    """Whether what is done with the tensor now would become part of a CUDA graph."""
    return bool(tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether its elements are numbers that lie one beside the other."""
    is_odd = tensor.is_quantized or tensor.is_nested or tensor.is_meta
    return tensor.layout is torch.strided and not is_odd


def is_better_sent(tensor: torch.Tensor) -> bool:
    """Whether the host should reduce it, although the device could."""
    return bool(tensor.is_cuda) and tensor.numel() * tensor.element_size() <= _SMALL_BYTES


def _compilers() -> list[str]:
    """Where PyTorch may have NVRTC, by which kernels are compiled."""
    major = (torch.version.cuda or "").partition(".")[0]
    around = Path(torch.__file__).parent
    places = [
        *around.parent.glob("nvidia/cu*/lib/libnvrtc.so.*"),
        *around.parent.glob("nvidia/cuda_nvrtc/lib/libnvrtc.so.*"),
        *around.glob("lib/libnvrtc*.so*"),
    ]
    places = [place for place in places if "builtins" not in place.name]
    found = [str(place) for place in places if place.name.startswith(f"libnvrtc.so.{major}")]
    return [*found, *map(str, places), f"libnvrtc.so.{major}", "libnvrtc.so"]


class _Mail:
    """Copies of tensors on their way from one device to the host."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def send(self, tensor: torch.Tensor) -> torch.Tensor:
        """What will hold its values once `wait` was called; the tensor may change at once."""
        if self._stream is None:
            return tensor.to("cpu", copy=True)
        copy = tensor.clone()  # the training's next operation may write into the tensor
        self._stream.wait_stream(torch.cuda.current_stream(tensor.device))
        with torch.cuda.stream(self._stream):
            host = torch.empty_like(copy, device="cpu", pin_memory=True)
            host.copy_(copy, non_blocking=True)
        copy.record_stream(self._stream)
        return host

    def wait(self) -> None:
        if self._stream is not None:
            self._stream.synchronize()


def _is_mostly_empty(tensor: torch.Tensor) -> bool:
    """Whether a sparse tensor, such as a graph's edges, would be far larger if written out."""
    bytes_of_all = tensor.numel() * tensor.element_size()
    return bool(bytes_of_all > _SMALL_BYTES and tensor.numel() > _MOST_ZEROS * tensor._nnz())


def _as_it_is_looked_at(tensor: torch.Tensor, wanted: int) -> torch.Tensor:
    """Of complex numbers how large they are; of a sparse tensor all of it, where that is wanted."""
    with own_operations():
        if tensor.layout is torch.sparse_coo:
            is_small = tensor.numel() * tensor.element_size() <= _MOST_BYTES
            if tensor.is_complex() or (wanted & ~_ON_DEVICE and is_small):
                tensor = tensor.to_dense()
        return tensor.abs() if tensor.is_complex() else tensor


class Deferred:
    """What is still on devices of the step under way. One thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._vectors: list[tuple[int, int, torch.Tensor]] = []
        self._scalars: list[tuple[int, int, torch.Tensor]] = []
        self._ratios: set[int] = set()  # ids of numbers that are left out where they are not finite
        self._mail: dict[torch.device, _Mail] = {}
        self._sent: list[tuple[int, int, torch.Tensor]] = []
        self._sent_bytes = 0
        self._classes: list[tuple[int, int, torch.Tensor, torch.Tensor]] = []
        self._channels: list[tuple[int, int, torch.Tensor]] = []
        self._pending: set[tuple[int, int]] = set()  # modes and ids: the first of a step counts
        self._brought = 0  # tensors that others have sent along
        self._is_native: bool | None = None  # the session takes statistics; None: not tried yet

    def prepare(self, tensor: torch.Tensor) -> bool:
        """Whether the session takes statistics of tensors where this one lives."""
        if self._is_native is None:
            if os.environ.get("TRAINDBG_DEVICE_KERNELS") == "0":
                self._is_native = False
            elif tensor.is_cuda:
                self._is_native = self._open()
            elif os.environ.get("TRAINDBG_DEVICE_PATH") == "1":
                self._session.reduce_on_host(int(os.environ.get("TRAINDBG_DEVICE_BEHIND", "0")))
                self._is_native = True
            else:
                return False
        return self._is_native

    def _open(self) -> bool:
        if torch.version.cuda is None:
            return False
        try:
            self._session.reduce_on_cuda(_compilers())
        except TraindbgError as error:
            _say.say(
                f"statistics on the GPU are taken by PyTorch's operations, which is slow: {error}",
                once="kernels",
            )
            return False
        return True

    def add_batch(
        self,
        mode: int,
        ids: list[int],
        tensors: list[torch.Tensor] | list[torch.Tensor | None],
        positions: list[int],
    ) -> bool:
        """Takes what is due of those at `positions`; None is one that is not there.

        As all that add something: whether `drain` is needed for it.
        """
        first = next((t for t in map(tensors.__getitem__, positions) if t is not None), None)
        if first is None:
            return False
        if self.prepare(first):
            if self._pending:  # the first of a step counts
                positions = [p for p in positions if (mode, ids[p]) not in self._pending]
            positions = self._session.observe_batch_later(mode, ids, tensors, positions)
        for position in positions:
            tensor = tensors[position]
            if tensor is not None:
                self._add_tensor(mode, ids[position], tensor)
        return bool(positions)

    def add_tensor(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> bool:
        """Takes what is due of it; the tensor may change afterwards."""
        is_free = self.prepare(tensor) and (mode, tensor_id) not in self._pending
        if is_free and self._session.observe_later(mode, tensor_id, tensor):
            return False
        self._add_tensor(mode, tensor_id, tensor)
        return True

    def _add_tensor(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> None:
        tensor = local_part(tensor).detach()
        is_taken = (mode, tensor_id) in self._pending
        wanted = 0 if is_taken else self._session.wanted(mode, tensor_id)
        is_sparse = tensor.layout is torch.sparse_coo
        is_known = is_sparse or _is_dense(tensor)
        if is_sparse and not wanted & ~(_ON_DEVICE | _OF_RULES) and _is_mostly_empty(tensor):
            wanted &= _ON_DEVICE
        if wanted == 0:
            return
        if is_known and not capturing_graph(tensor):
            tensor = _as_it_is_looked_at(tensor, wanted)
            is_sparse = tensor.layout is torch.sparse_coo
        if not is_known:
            self._session.cannot_take(mode, tensor_id, _core.why_unreadable(tensor))
        elif capturing_graph(tensor):
            self._session.skip()
        elif is_sparse and wanted & ~_ON_DEVICE:
            self._session.cannot_take(mode, tensor_id, _TOO_LARGE)
        elif tensor.numel() == 0:
            self._session.observe_statistics(mode, tensor_id, _core.Statistics())
        elif not is_sparse and self._takes_channels(tensor, wanted):
            self._add_channels(mode, tensor_id, tensor, wanted)
        elif not is_sparse and (
            wanted & ~_ON_DEVICE
            or (is_better_sent(tensor) and self._sent_bytes + _SMALL_BYTES <= _MOST_BYTES)
        ):
            self._pending.add((mode, tensor_id))
            self._sent.append((mode, tensor_id, self._send(tensor)))
            if self._sent_bytes >= _MOST_BYTES:
                self._receive()
        else:
            self._add_statistics(mode, tensor_id, tensor, wanted)

    def _add_statistics(self, mode: int, tensor_id: int, tensor: torch.Tensor, wanted: int) -> None:
        self._pending.add((mode, tensor_id))
        is_sparse = tensor.layout is torch.sparse_coo
        with own_operations():
            vector = (sparse_statistics_vector if is_sparse else statistics_vector)(tensor)
            if wanted & _UNITS and tensor.is_floating_point() and not is_sparse:
                kind = self._session.activation(tensor_id)
                if kind != "none":
                    vector = torch.cat([vector, units_vector(tensor, kind).to(vector.dtype)])
            self._vectors.append((mode, tensor_id, vector))

    def _takes_channels(self, tensor: torch.Tensor, wanted: int) -> bool:
        """Whether its channels are taken where it lies, because a copy of it would be large."""
        return (
            bool(wanted & _CHANNELS)
            and not wanted & ~(_ON_DEVICE | _CHANNELS)
            and tensor.numel() * tensor.element_size() > _SMALL_BYTES
            and tensor.is_floating_point()
            and tensor.element_size() <= 4
        )

    def _add_channels(self, mode: int, tensor_id: int, tensor: torch.Tensor, wanted: int) -> None:
        with own_operations():
            by = tensor if tensor.dim() > 0 else tensor.reshape(1)
            dimension = self._session.channel_dimension(tensor_id, by.dim())
            if by.shape[dimension] > _MOST_CHANNELS:
                self._session.skip()
            else:
                self._channels.append((mode, tensor_id, self._send(channels_of(by, dimension))))
        if not wanted & _ON_DEVICE:
            self._pending.add((mode, tensor_id))
        elif not (
            self.prepare(tensor)
            and self._session.observe_later(mode, tensor_id, tensor, without_channels=True)
        ):
            self._add_statistics(mode, tensor_id, tensor, wanted)

    def add_update(
        self,
        mode: int,
        update_id: int,
        ratio_id: int,
        before: torch.Tensor,
        after: torch.Tensor,
    ) -> bool:
        """Takes what is due of `after - before`, and how large that is beside `before`."""
        if self.prepare(after) and self._session.observe_update_later(
            mode, update_id, ratio_id, before, after
        ):
            return False
        if after.layout is not torch.strided or capturing_graph(after):
            self._session.skip()
            return False
        with own_operations():
            if before.dtype.is_floating_point and before.element_size() < 4:
                before, after = before.float(), after.float()
            difference = after - before
            self._add_tensor(mode, update_id, difference)
            if difference.numel() > 0:
                wide = torch.float32 if before.device.type == "mps" else torch.float64
                sizes = [x.abs() if x.is_complex() else x for x in (difference, before)]
                norms = [torch.linalg.vector_norm(x, dtype=wide) for x in sizes]
                self._ratios.add(ratio_id)
                self._add_scalar(mode, ratio_id, norms[0] / norms[1])
        return True

    def add_scalar(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> bool:
        """Takes the value of a tensor with one element."""
        if self.prepare(tensor) and self._session.observe_scalar_later(mode, tensor_id, tensor):
            return False
        self._add_scalar(mode, tensor_id, tensor)
        return True

    def _add_scalar(self, mode: int, tensor_id: int, tensor: torch.Tensor) -> None:
        tensor = local_part(tensor)
        if not _is_dense(tensor):
            self._session.cannot_take(mode, tensor_id, _core.why_unreadable(tensor))
        elif capturing_graph(tensor):
            self._session.skip()
        else:
            with own_operations():
                value = tensor.detach().reshape(1)
                value = value.abs() if value.is_complex() else value.clone()
            self._scalars.append((mode, tensor_id, value))

    def add_classes(
        self, mode: int, tensor_id: int, logits: torch.Tensor, labels: torch.Tensor
    ) -> None:
        """Counts labels, predictions and hits of each class."""
        if (mode, tensor_id) in self._pending or not self._session.wanted(mode, tensor_id):
            return
        if capturing_graph(logits):
            self._session.skip()
            return
        self._pending.add((mode, tensor_id))
        sent = self._send(logits.detach()), self._send(labels.detach())
        self._classes.append((mode, tensor_id, *sent))
        if self._sent_bytes >= _MOST_BYTES:
            self._receive()

    def bring(self, tensor: torch.Tensor) -> torch.Tensor:
        """What will hold its values in host memory once `drain` has returned."""
        self._brought += 1
        return self._send(tensor)

    def clear(self) -> None:
        """Drops everything."""
        self._brought = 0
        self._vectors, self._scalars, self._sent, self._classes = [], [], [], []
        self._channels = []
        self._sent_bytes = 0
        self._pending.clear()

    def _send(self, tensor: torch.Tensor) -> torch.Tensor:
        if tensor.device not in self._mail:
            self._mail[tensor.device] = _Mail(tensor.device)
        self._sent_bytes += tensor.numel() * tensor.element_size()
        with own_operations():
            return self._mail[tensor.device].send(tensor)

    def _receive(self) -> None:
        """Waits for what was sent, and hands it to the session."""
        sent, self._sent, self._sent_bytes = self._sent, [], 0
        classes, self._classes = self._classes, []
        channels, self._channels = self._channels, []
        self._wait()
        for mode, tensor_id, tensor in sent:
            self._session.observe(mode, tensor_id, tensor)
        for mode, tensor_id, logits, labels in classes:
            self._session.observe_classes(mode, tensor_id, logits, labels)
        for mode, tensor_id, extremes in channels:
            self._session.observe_channels(mode, tensor_id, extremes)

    def _wait(self) -> None:
        for mail in self._mail.values():
            mail.wait()

    def drain(self) -> None:
        """Brings everything over and hands it to the session. Waits for the devices.

        But not while a CUDA graph is captured, of which no wait may become a part.
        """
        left = len(self._vectors) + len(self._scalars) + len(self._sent) + len(self._classes)
        left += self._brought + len(self._channels)
        try:
            if left and torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
                self._session.skip(left)
            elif left:
                self._drain()
        finally:
            self.clear()  # nothing is left over for the next step

    def _drain(self) -> None:
        vectors, self._vectors = self._vectors, []
        scalars, self._scalars = self._scalars, []
        by_device: dict[torch.device, list[tuple[int, int, torch.Tensor]]] = {}
        for item in vectors + scalars:
            by_device.setdefault(item[2].device, []).append(item)
        numbers = []
        for device, items in by_device.items():
            wide = torch.float32 if device.type == "mps" else torch.float64
            with own_operations():
                together = torch.cat([vector.to(wide) for _, _, vector in items])
            numbers.append((items, self._send(together)))
        self._receive()
        for items, host in numbers:
            flat = host.tolist()
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
                    found = _core.Statistics(*counts, *values[5:_FIELDS])
                    if size > _FIELDS:
                        number, inactive, low, high = map(int, values[_FIELDS:])
                        units = number, inactive, low, high
                        self._session.observe_statistics(mode, tensor_id, found, units)
                    else:
                        self._session.observe_statistics(mode, tensor_id, found)
