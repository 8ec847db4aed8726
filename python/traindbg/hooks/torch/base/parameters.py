"""What can be read off an optimizer: its parameters, learning rates and settings."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch.base.names import class_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_NUMBER_SETTINGS = (
    "lr",
    "momentum",
    "weight_decay",
    "dampening",
    "nesterov",
    "eps",
    "alpha",
    "amsgrad",
    "maximize",
    "lr_decay",
)


class Owner(NamedTuple):
    """Where a parameter is, beside its whole name."""

    path: str
    module: str
    module_type: str
    layer: int


def role_of(name: str) -> str:
    """`bias` or `weight`, by a parameter's name."""
    return "bias" if "bias" in name.rpartition(".")[2] else "weight"


def owned_in(
    model: torch.nn.Module, prefix: str, first_layer: int = 0
) -> Iterator[tuple[torch.nn.Parameter, Owner]]:
    """All parameters of a model in order; one of several names (tied weights) comes with each.

    `first_layer`: the number of the model itself, where others come before it.
    """
    layers = {id(module): layer for layer, module in enumerate(model.modules(), first_layer)}
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            yield parameter, _owner(path, module, name, prefix, layers[id(module)])


def buffers_in(
    model: torch.nn.Module, prefix: str, first_layer: int = 0
) -> Iterator[tuple[torch.Tensor, Owner]]:
    """All buffers of a model, as `owned_in` gives its parameters."""
    for layer, (path, module) in enumerate(model.named_modules(), first_layer):
        for name, buffer in module._buffers.items():  # `named_buffers` takes longer than the rest
            if buffer is not None:
                yield buffer, _owner(path, module, name, prefix, layer)


def _owner(path: str, module: torch.nn.Module, name: str, prefix: str, layer: int) -> Owner:
    where = prefix + path if path else prefix.rstrip(".") or "model"
    full = prefix + (f"{path}.{name}" if path else name)
    return Owner(full, where, class_name(module), layer)


class Parameters:
    """The parameters that one optimizer answers for, with the ids of their tensors."""

    def __init__(self) -> None:
        self.owners: list[Owner] = []
        self.weight_ids: list[int] = []
        self.gradient_ids: list[int] = []
        self.groups = 0
        self.is_stale = False  # modules or parameters were put somewhere since
        self.smallest_name = ""
        self._values: list[torch.nn.Parameter] = []
        self._smallest: torch.nn.Parameter | None = None

    @property
    def values(self) -> list[torch.nn.Parameter]:
        """To be asked before what else there is of each."""
        return self._values

    @property
    def smallest(self) -> torch.nn.Parameter | None:
        """Of those that the optimizer steps itself."""
        return self._smallest

    def add(self, parameter: torch.nn.Parameter, owner: Owner, weight: int, gradient: int) -> None:
        """One more; `weight` and `gradient` are the ids of its tensors."""
        self._values.append(parameter)
        self.owners.append(owner)
        self.weight_ids.append(weight)
        self.gradient_ids.append(gradient)

    def is_smallest(self, parameter: torch.nn.Parameter, name: str) -> None:
        """Says which one is."""
        self._smallest, self.smallest_name = parameter, name


class WeakParameters(Parameters):
    """The same of tensors that no module holds, and which go when the program lets them go."""

    def __init__(self) -> None:
        super().__init__()
        self._known: list[weakref.ref[torch.nn.Parameter]] = []
        self._known_smallest: weakref.ref[torch.nn.Parameter] | None = None

    @property
    def values(self) -> list[torch.nn.Parameter]:
        """Those that are alive; of others nothing is kept."""
        found = [known() for known in self._known]
        if any(each is None for each in found):
            kept = [place for place, each in enumerate(found) if each is not None]
            self._known = [self._known[place] for place in kept]
            self.owners = [self.owners[place] for place in kept]
            self.weight_ids = [self.weight_ids[place] for place in kept]
            self.gradient_ids = [self.gradient_ids[place] for place in kept]
        return [each for each in found if each is not None]

    @property
    def smallest(self) -> torch.nn.Parameter | None:
        """None where it is gone, too."""
        return None if self._known_smallest is None else self._known_smallest()

    def add(self, parameter: torch.nn.Parameter, owner: Owner, weight: int, gradient: int) -> None:
        """See `Parameters`."""
        super().add(parameter, owner, weight, gradient)
        self._values.clear()
        self._known.append(weakref.ref(parameter))

    def is_smallest(self, parameter: torch.nn.Parameter, name: str) -> None:
        """See `Parameters`."""
        self._known_smallest, self.smallest_name = weakref.ref(parameter), name


def word_of(dtype: torch.dtype) -> str:
    """`float32` of torch.float32."""
    return str(dtype).removeprefix("torch.")


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Its shape, also of a nested tensor of the older layout: 0 where its parts differ."""
    try:
        shape: tuple[int, ...] = tensor.shape
        return shape
    except RuntimeError:
        return tuple(_size_of(tensor, dimension) for dimension in range(tensor.dim()))


def _size_of(tensor: torch.Tensor, dimension: int) -> int:
    try:
        size: int = tensor.size(dimension)
        return size
    except RuntimeError:  # its parts differ there
        return 0


def number_of(parameter: torch.Tensor) -> int:
    """Elements; 0 for a parameter or buffer of a lazy module that has no shape yet."""
    return 0 if torch.nn.parameter.is_lazy(parameter) else parameter.numel()


def has_memory(tensor: torch.Tensor) -> bool:
    """Not where a wrapper has taken it away for now, as FSDP does between the passes."""
    held: int = tensor.untyped_storage().nbytes()
    needed: int = (tensor.storage_offset() + tensor.numel()) * tensor.element_size()
    return held >= needed


def learning_rates(optimizer: torch.optim.Optimizer) -> tuple[float, ...]:
    """Of all groups, as far as they can be known without waiting for a device."""
    rates = (group.get("lr") for group in optimizer.param_groups)
    return tuple(
        float(rate)
        for rate in rates
        if isinstance(rate, (int, float)) or (isinstance(rate, torch.Tensor) and rate.is_cpu)
    )


def base_rate(optimizer: torch.optim.Optimizer) -> float:
    """What schedules multiply, the largest of all groups; 0: not known, or not the rate at its top.

    Schedules that know the top of their rate set out from a part of it.
    """
    rates: list[float] = []
    for group in optimizer.param_groups:
        rate = group.get("initial_lr")
        if not isinstance(rate, (int, float)) or group.get("max_lr") is not None:
            return 0.0
        rates.append(float(rate))
    return max(rates, default=0.0)


def optimizer_facts(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Its type and the settings of its first group, as an event and a description hold them."""
    settings: dict[str, float] = {}
    group = optimizer.param_groups[0] if optimizer.param_groups else {}
    for name in _NUMBER_SETTINGS:
        value = group.get(name)
        if isinstance(value, (bool, int, float)):
            settings[name] = float(value)
    rates = learning_rates(optimizer)
    if rates:
        settings["lr"] = rates[0]
    betas = group.get("betas")
    if isinstance(betas, (tuple, list)):
        for number, beta in enumerate(betas, 1):
            if isinstance(beta, (int, float)):
                settings[f"beta{number}"] = float(beta)
    return {"type": type(optimizer).__name__, "settings": settings}
