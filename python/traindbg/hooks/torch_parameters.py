"""What can be read off an optimizer: its parameters, learning rates and settings."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

_NUMBER_SETTINGS = (
    "lr",
    "momentum",
    "weight_decay",
    "dampening",
    "nesterov",
    "eps",
    "alpha",
    "amsgrad",
)


class Owner(NamedTuple):
    """Where a parameter is, beside its whole name."""

    path: str
    module: str
    module_type: str
    layer: int


class Parameters:
    """The parameters that one optimizer answers for, with the ids of their tensors."""

    def __init__(self) -> None:
        self.values: list[torch.nn.Parameter] = []
        self.owners: list[Owner] = []
        self.weight_ids: list[int] = []
        self.gradient_ids: list[int] = []
        self.groups = 0
        self.is_stale = False  # modules or parameters were put somewhere since
        self.smallest: torch.nn.Parameter | None = None
        self.smallest_name = ""


def word_of(dtype: torch.dtype) -> str:
    """`float32` of torch.float32."""
    return str(dtype).removeprefix("torch.")


def number_of(parameter: torch.Tensor) -> int:
    """Elements; 0 for a parameter of a lazy module that has no shape yet."""
    return 0 if torch.nn.parameter.is_lazy(parameter) else parameter.numel()


def learning_rates(optimizer: torch.optim.Optimizer) -> tuple[float, ...]:
    """Of all groups, as far as they can be known without waiting for a device."""
    rates = (group.get("lr") for group in optimizer.param_groups)
    return tuple(
        float(rate)
        for rate in rates
        if isinstance(rate, (int, float)) or (isinstance(rate, torch.Tensor) and rate.is_cpu)
    )


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
