"""The facts about a process and its training that a run holds once."""

from __future__ import annotations

import collections
import json
import os
import platform
import socket
from typing import Any

import torch

from traindbg import _core
from traindbg.hooks.torch.base.names import class_name
from traindbg.hooks.torch.base.parameters import (
    learning_rates,
    number_of,
    optimizer_facts,
    word_of,
)
from traindbg.hooks.torch.base.shards import world_of_process, wrappers
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.data.loaders import sizes

_ENVIRONMENT = (
    "CUDA_VISIBLE_DEVICES",
    "CUBLAS_WORKSPACE_CONFIG",
    "LOCAL_RANK",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "PYTHONHASHSEED",
    "RANK",
    "WORLD_SIZE",
)


_MOST_TYPES = 32


def _module_types(model: torch.nn.Module) -> str:
    """How many modules without modules in them are of each type: `Linear=3 ReLU=2`."""
    counts = collections.Counter(
        class_name(module) for module in model.modules() if next(module.children(), None) is None
    )
    return " ".join(f"{name}={count}" for name, count in counts.most_common(_MOST_TYPES))


def optimizer_description(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """As `optimizer_facts`, with the extremes of the learning rates where its groups differ."""
    facts = optimizer_facts(optimizer)
    rates = learning_rates(optimizer)
    if len(set(rates)) > 1:
        facts["settings"] |= {"lr_min": min(rates), "lr_max": max(rates)}
    return facts


def description(
    worker: int,
    models: list[tuple[torch.nn.Module, str]],
    optimizers: list[dict[str, Any]],
) -> str:
    """The JSON of a WorkerMeta; of several models with their prefixes, the first is described.

    `optimizers` as `optimizer_description` says it of each.
    """
    model = models[0][0] if models else None
    parameters = [] if model is None else list(model.parameters())
    first = parameters[0] if parameters else None
    facts = {
        "torch_threads": str(torch.get_num_threads()),
        "deterministic": str(torch.are_deterministic_algorithms_enabled()).lower(),
    }
    if first is not None:
        facts["device"] = str(first.device)
        facts["dtype"] = word_of(first.dtype)
    if model is not None:
        facts["module_types"] = _module_types(model)
    facts |= sizes.settings
    if torch.version.cuda:
        facts["cuda"] = torch.version.cuda
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    environment |= world_of_process() | wrappers.of(model)
    out: dict[str, Any] = {
        "worker": worker,
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "framework": f"torch {torch.version.__version__}",
        "python": platform.python_version(),
        "traindbg": _core.__version__,
        "model_type": class_name(model) if model is not None else "",
        "parameters": sum(number_of(parameter) for parameter in parameters),
        "optimizers": optimizers,
        "environment": [list(pair) for pair in (facts | environment).items()],
        "sources": sources.described(models),
    }
    return json.dumps(out)
