"""Whether weights are as an initialiser drew them: nothing trained them, and nothing was loaded.

Told by their distribution, which is known exactly: uniform within the bound of one of the usual
schemes and filling it, or normal of their standard deviation. Weights that were trained lie outside
of a bound, or have another deviation or another shape.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn

from traindbg.hooks.torch.base.device import capturing_graph, own_operations, widest_of
from traindbg.hooks.torch.base.shards import local_part

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEAST = 64  # elements from which on a distribution can be told
_LEAST_NORMAL = 512
_LEAST_PHASES = 16
_LEAST_DRAWN = 256
_LEAST_OF_TABLE = 512
_MOST = 1 << 20  # that are looked at
_MOST_ROWS, _MOST_COLUMNS = 1024, 256
_NORMALS = (0.02, 0.01, 1.0)  # standard deviations that models use whatever their size


def _fans(weight: torch.Tensor) -> tuple[float, float]:
    if weight.dim() < 2:
        return float(weight.numel()), float(weight.numel())
    field = math.prod(weight.shape[2:])
    return float(weight.shape[1] * field), float(weight.shape[0] * field)


def _bounds(module: nn.Module, weight: torch.Tensor) -> Iterator[float]:
    """Of the usual uniform distributions."""
    fan_in, fan_out = _fans(weight)
    if isinstance(module, (nn.modules.rnn.RNNBase, nn.modules.rnn.RNNCellBase)):
        yield 1 / math.sqrt(module.hidden_size)
    yield 1 / math.sqrt(fan_in)
    if isinstance(module, nn.modules.conv._ConvTransposeNd):
        yield 1 / math.sqrt(fan_out)
    yield math.sqrt(6 / (fan_in + fan_out))  # Xavier's
    yield math.sqrt(6 / fan_in)  # He's
    yield math.sqrt(6 / fan_out)
    yield math.sqrt(3 / fan_in)


def _deviations(weight: torch.Tensor) -> Iterator[float]:
    """Of the usual normal distributions."""
    fan_in, fan_out = _fans(weight)
    yield from _NORMALS
    yield math.sqrt(2 / fan_in)
    yield math.sqrt(2 / fan_out)
    yield math.sqrt(1 / fan_in)
    yield math.sqrt(2 / (fan_in + fan_out))


def _some_of(weight: torch.Tensor) -> torch.Tensor:
    """The first elements, without a copy of all of a matrix that lies in another order."""
    rows = -(-_MOST * len(weight) // max(1, weight.numel()))
    return weight.detach()[:rows].reshape(-1)[:_MOST]


class Measures(NamedTuple):
    """Of a parameter: all by which it is told whether it was drawn, and of which distribution."""

    numbers: torch.Tensor  # on its device, in the order of the arguments of `says_drawn`
    bounds: list[float]  # of the uniform distributions that it may be of
    deviations: list[float]  # of the normal ones

    def says_drawn(self, numbers: list[float]) -> bool | None:
        """`numbers`: those above, in host memory."""
        is_constant, number, mean, top, deviation, kurtosis = numbers
        if is_constant:
            return None
        if number < _LEAST or deviation == 0 or not math.isfinite(deviation):
            return False
        noise = 1 / math.sqrt(number)
        for bound in self.bounds:
            expected = bound / math.sqrt(3)
            is_filled = bound * (1 - 12 / number) <= top <= bound * (1 + 1e-5)
            is_centred = abs(mean) < 3.5 * expected * noise
            if is_filled and is_centred and abs(deviation / expected - 1) < 2 * noise:
                return True
        if number < _LEAST_NORMAL or abs(kurtosis - 3) > 4 * math.sqrt(24) * noise:
            return False
        return any(
            abs(deviation / expected - 1) < 2.5 * noise and abs(mean) < 3.5 * expected * noise
            for expected in self.deviations
        )


def _numbers_of(weight: torch.Tensor, *, has_padding: bool) -> torch.Tensor:
    """As `Measures` has them. With padding, of what is not 0."""
    some = _some_of(weight)
    is_constant = (some == some[0]).all()
    x = some.to(widest_of(weight))
    number, mean, deviation = torch.full_like(x[0], x.numel()), x.mean(), x.std()
    away = x - mean
    if has_padding:
        is_there = x != 0
        number = is_there.sum().to(x.dtype)
        mean = x.sum() / number
        away = torch.where(is_there, x - mean, 0)
        deviation = (away.square().sum() / (number - 1)).sqrt()
    kurtosis = (away / deviation).pow(4).sum() / number
    return torch.stack([is_constant.to(x.dtype), number, mean, x.abs().max(), deviation, kurtosis])


def measure(module: nn.Module | None, name: str, parameter: torch.Tensor) -> Measures | None:
    """What tells whether a parameter of a module is as it was initialised. None: nothing does.

    Of biases, gains and small tensors it cannot be told.
    """
    weight = local_part(parameter.detach())
    if module is None or weight.dim() < 2 or weight.numel() < _LEAST:
        return None
    if not weight.is_floating_point() or capturing_graph(weight):
        return None
    last = name.rpartition(".")[2]
    if not last.startswith(("weight", "in_proj", "q_proj", "k_proj", "v_proj")):
        return None
    has_padding = isinstance(module, nn.Embedding) and module.padding_idx is not None
    with own_operations():
        numbers = _numbers_of(weight, has_padding=has_padding)
    return Measures(numbers, list(_bounds(module, weight)), list(_deviations(weight)))


def phases_of(module: nn.Module) -> torch.Tensor | None:
    """What tells whether a layer's biases are angles (`are_phases`), on their device.

    None: it has none.
    """
    bias = getattr(module, "bias", None)
    if not isinstance(bias, torch.Tensor) or bias.numel() < _LEAST_PHASES or capturing_graph(bias):
        return None
    with own_operations():
        x = local_part(bias.detach()).to(widest_of(bias))
        return torch.stack([x.min(), x.max(), x.std()])


def are_phases(numbers: list[float]) -> bool:
    """Whether a layer's biases are angles of a full circle: of random Fourier features, say.

    They are drawn once and meant to stay (Rahimi and Recht, "Random Features for Large-Scale Kernel
    Machines", 2007).
    """
    low, high, deviation = numbers
    circle = 2 * math.pi
    is_centred = low >= -circle / 2 and high <= circle / 2
    fits = is_centred or (low >= 0 and high <= circle)
    return (
        fits and high - low > 0.75 * circle and abs(deviation * math.sqrt(12) / circle - 1) < 0.25
    )


def looks_drawn(parameter: torch.Tensor) -> bool:
    """Whether a matrix looks drawn at random, uniform or normal of whatever size.

    Values that were learned have heavier tails, or a few directions that stand out. Waits for a
    device.
    """
    weight = local_part(parameter.detach())
    if weight.dim() < 2 or weight.numel() < _LEAST_DRAWN or not weight.is_floating_point():
        return False
    if capturing_graph(weight):
        return False
    with own_operations():
        x = weight.flatten(1)[:_MOST_ROWS, :_MOST_COLUMNS].to(widest_of(weight))
        shape = ((x - x.mean()) / x.std()).pow(4).mean()
        numbers: list[float] = torch.stack([x.std(), shape]).tolist()
        deviation, kurtosis = numbers
        if deviation == 0 or not math.isfinite(deviation):
            return False
        largest = float(torch.linalg.matrix_norm(x, 2))
    rows, columns = x.shape
    noise = math.sqrt(24 / x.numel())
    is_normal, is_uniform = abs(kurtosis - 3) < 4 * noise, abs(kurtosis - 1.8) < 4 * noise
    # The largest singular value of a random matrix (Marchenko, Pastur).
    is_random = largest < 1.1 * deviation * (math.sqrt(rows) + math.sqrt(columns))
    return is_random and (is_normal or is_uniform)


def looks_random_table(module: nn.Module, parameter: torch.Tensor) -> bool:
    """Whether the rows of an embedding look drawn at random, all in one way. Rows of 0 are padding.

    Such a table tells its rows apart and says nothing of what they stand for: one that was learned
    has directions along which related ones lie. Waits for a device.
    """
    table = local_part(parameter.detach())
    if not isinstance(module, (nn.Embedding, nn.EmbeddingBag)) or table.dim() != 2:
        return False
    if table.numel() < _LEAST_OF_TABLE or capturing_graph(table):
        return False
    with own_operations():
        table = table[:_MOST_ROWS]
        table = table[table.any(1)]
    return table.numel() >= _LEAST_OF_TABLE and looks_drawn(table) and _is_no_direction_faint(table)


def _is_no_direction_faint(table: torch.Tensor) -> bool:
    """Whether the smallest singular value is that of a random matrix (Marchenko, Pastur), too.

    Of one that is nearly square it may be anything.
    """
    rows, columns = table.shape[0], min(table.shape[1], _MOST_COLUMNS)
    if max(rows, columns) < 2 * min(rows, columns):
        return True
    with own_operations():
        x = table[:, :_MOST_COLUMNS].to(widest_of(table))
        least, deviation = torch.stack([torch.linalg.svdvals(x).min(), x.std()]).tolist()
    return bool(least > 0.9 * deviation * abs(math.sqrt(rows) - math.sqrt(columns)))
