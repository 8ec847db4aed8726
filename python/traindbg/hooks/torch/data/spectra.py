"""What a convolution that goes by a Fourier transform shows of later positions.

    spectrum = torch.fft.rfft(x, n=size, dim=1) * torch.fft.rfft(kernel, n=size, dim=0)
    y = torch.fft.irfft(spectrum, n=size, dim=1)[:, :length]

Such a convolution is circular: what goes beyond the end of `size` positions comes in again at the
front. Unless what was added to the sequence is as long as the kernel, its first positions receive
its last ones. Which taps do that is seen by the kernel that the spectrum is multiplied by, and
whether anything is there by the last position where rows differ: behind it there may be zeros. What
is kept ends with the step, a kernel at the transform back.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple, TypeVar

import torch

from traindbg.hooks.torch.base.device import capturing_graph
from traindbg.hooks.torch.data.convolutions import Along, flag

FORWARD: frozenset[Any] = frozenset({torch.fft.rfft, torch.fft.fft})
INVERSE: frozenset[Any] = frozenset({torch.fft.irfft, torch.fft.ifft})
SPECTRAL: frozenset[Any] = FORWARD | INVERSE

_MOST_KNOWN = 64  # transforms and products of a step
_MOST_VALUES = 1 << 20  # of a kernel's spectrum
_ROUNDED = 1e-4  # of the largest one: what rounding leaves of a tap, or difference, that is 0


class _Transformed(NamedTuple):
    """The spectrum of a sequence, or of a kernel."""

    result: weakref.ref[torch.Tensor]
    length: int  # of what was given
    size: int  # with what was added
    dim: int
    last: torch.Tensor  # a number: the last position that tells something


class _Filtered(NamedTuple):
    """The spectrum of a sequence, multiplied by that of a kernel."""

    result: weakref.ref[torch.Tensor]
    of: _Transformed
    rank: int  # dimensions of the sequence's spectrum
    kernel: torch.Tensor  # without gradient
    dim: int  # of the kernel


_Known = TypeVar("_Known", _Transformed, _Filtered)


class Spectra:
    """Those of one step."""

    def __init__(self) -> None:
        self._transformed: dict[int, _Transformed] = {}  # by the results' ids
        self._filtered: dict[int, _Filtered] = {}  # the same

    def called(self, function: Any, args: Any, kwargs: Any, result: Any) -> Along | None:
        """One of SPECTRAL was called, or a product that is a spectrum was made."""
        if not isinstance(result, torch.Tensor) or capturing_graph(result):
            return None
        if function in INVERSE:
            given = args[0] if args else kwargs.get("input")
            known = self._filtered.pop(id(given), None)
            if known is None or known.result() is not given:
                return None
            return _returned(known, function, *_asked(args, kwargs))
        # Of what is over nothing is kept: a kernel's spectrum may be large.
        self._transformed = _alive(self._transformed)
        self._filtered = _alive(self._filtered)
        if len(self._transformed) + len(self._filtered) >= _MOST_KNOWN:
            return None
        if function in FORWARD:
            self._transform(args, kwargs, result)
        else:
            self._multiplied(args, result)
        return None

    def _transform(self, args: Any, kwargs: Any, result: torch.Tensor) -> None:
        given = args[0] if args else kwargs.get("input")
        if not isinstance(given, torch.Tensor) or given.is_complex():
            return
        size, dim = _asked(args, kwargs)
        dim %= given.dim()
        length = int(given.shape[dim])
        # Of as many features as positions nobody knows over which it goes.
        if any(abs(n - length) < 2 for at, n in enumerate(given.shape) if at not in (0, dim)):
            return
        if length < 2 or (size is not None and size < length):
            return
        self._transformed[id(result)] = _Transformed(
            weakref.ref(result),
            length,
            length if size is None else size,
            dim,
            _last_telling(given.detach(), dim),
        )

    def _multiplied(self, args: Any, result: torch.Tensor) -> None:
        if len(args) != 2 or not all(isinstance(each, torch.Tensor) for each in args):
            return
        for signal, kernel in (args, args[::-1]):
            known = self._transformed.get(id(signal))
            if known is None or id(known.result()) != id(signal) or result.shape != signal.shape:
                continue
            # All rows of a batch are multiplied by one kernel.
            before = signal.dim() - kernel.dim()
            is_shared = before > 0 or (before == 0 and kernel.shape[0] == 1 < signal.shape[0])
            dim = known.dim - before
            if not (is_shared and kernel.is_complex()) or min(known.dim - 1, dim) < 0:
                continue
            if kernel.shape[dim] != signal.shape[known.dim] or kernel.numel() > _MOST_VALUES:
                continue
            self._filtered[id(result)] = _Filtered(
                weakref.ref(result), known, signal.dim(), kernel.detach(), dim
            )
            return


def _returned(known: _Filtered, function: Any, size: int | None, dim: int) -> Along | None:
    of, kernel = known.of, known.kernel
    is_half = function is torch.fft.irfft  # of a real sequence
    values = kernel.shape[known.dim]
    if size is None:
        size = 2 * (values - 1) if is_half else values
    if dim not in (of.dim, of.dim - known.rank) or size != of.size:
        return None
    if values != (size // 2 + 1 if is_half else size) or kernel.numel() == 0:
        return None
    inverse = torch.fft.irfft if is_half else torch.fft.ifft
    taps = inverse(kernel, n=of.size, dim=known.dim).abs().movedim(known.dim, 0)
    taps = taps.reshape(of.size, -1)
    # The last tap carries the last position farthest: from the end on, to the front.
    reach = _last_of((taps > _ROUNDED * taps.amax()).any(1))
    return Along(of.length, flag(reach + of.last >= of.size), is_round=True)


def _alive(known: dict[int, _Known]) -> dict[int, _Known]:
    return {key: each for key, each in known.items() if each.result() is not None}


def _last_of(holds: torch.Tensor) -> torch.Tensor:
    """The last place where it does; 0: nowhere."""
    return (torch.arange(len(holds), device=holds.device) * holds).amax()


def _last_telling(values: torch.Tensor, dim: int) -> torch.Tensor:
    """The last position that is not the same in all rows, as zeros behind a record are."""
    if values.numel() == 0:
        return torch.zeros((), dtype=torch.long, device=values.device)
    if dim > 0 and values.shape[0] > 1:
        values = values - values[:1]
    sizes = values.abs().movedim(dim, 0).reshape(values.shape[dim], -1)
    return _last_of((sizes > _ROUNDED * sizes.amax()).any(1))


def _asked(args: Any, kwargs: Any) -> tuple[int | None, int]:
    """Of a transform: how long it is to be made, and along which dimension."""
    size = args[1] if len(args) > 1 else kwargs.get("n")
    dim = args[2] if len(args) > 2 else kwargs.get("dim", -1)
    return (None if size is None else int(size)), int(dim)
