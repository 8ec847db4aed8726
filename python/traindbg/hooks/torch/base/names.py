"""What PyTorch's modules, functions and nested values are called in a run."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

# Activation modules: what a rule needs to know of them. Anything else is a plain output.
_MODULE_KINDS: dict[str, str] = {
    "ReLU": "relu",
    "ReLU6": "relu",
    "Tanh": "tanh",
    "Sigmoid": "sigmoid",
    **dict.fromkeys(
        (
            "CELU",
            "ELU",
            "GELU",
            "GLU",
            "Hardshrink",
            "Hardsigmoid",
            "Hardswish",
            "Hardtanh",
            "LeakyReLU",
            "LogSigmoid",
            "LogSoftmax",
            "Mish",
            "PReLU",
            "RReLU",
            "SELU",
            "SiLU",
            "Softmax",
            "Softmax2d",
            "Softmin",
            "Softplus",
            "Softshrink",
            "Softsign",
            "Tanhshrink",
            "Threshold",
        ),
        "smooth",
    ),
}
_KIND_OF_TYPE = {
    getattr(nn, name): kind for name, kind in _MODULE_KINDS.items() if hasattr(nn, name)
}

# Activations called as functions: the word in the tensor's name, and the kind.
_FUNCTION_WORDS: dict[str, str] = {
    "relu": "relu",
    "relu_": "relu",
    "relu6": "relu",
    "tanh": "tanh",
    "tanh_": "tanh",
    "sigmoid": "sigmoid",
    "sigmoid_": "sigmoid",
    **dict.fromkeys(
        (
            *("celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh"),
            *("leaky_relu", "log_softmax", "logsigmoid", "mish", "prelu", "rrelu", "selu", "silu"),
            *("softmax", "softmin", "softplus", "softshrink", "softsign", "tanhshrink"),
            *("threshold", "celu_", "elu_", "hardtanh_", "leaky_relu_", "rrelu_", "selu_"),
            "threshold_",
        ),
        "smooth",
    ),
}
ACTIVATION_FUNCTIONS: dict[Any, tuple[str, str]] = {
    getattr(home, word): (word.rstrip("_"), kind)
    for home in (functional, torch, torch.Tensor, torch.special)
    for word, kind in _FUNCTION_WORDS.items()
    if hasattr(home, word)
}
ACTIVATION_FUNCTIONS[torch.special.expit] = ("sigmoid", "sigmoid")

# With these a ReLU may be written out: `x.clamp(min=0)`, `torch.maximum(x, torch.tensor(0.0))`.
_CLAMPS = {
    getattr(home, word): word.rstrip("_")
    for home in (torch, torch.Tensor)
    for word in ("clamp", "clamp_", "clamp_min", "clamp_min_", "clip", "clip_", "maximum")
    if hasattr(home, word)
}
ACTIVATION_FUNCTIONS.update({function: (word, "none") for function, word in _CLAMPS.items()})
_LAYERS = frozenset(
    f"{operation}Backward0"
    for operation in (
        *("Addmm", "Bmm", "Convolution", "MkldnnConvolution", "Mm"),
        *("NativeBatchNorm", "NativeGroupNorm", "NativeLayerNorm"),
    )
)
# Between a layer's own operation and its output: a bias that is added, a shape with more axes, and
# what a change of such a shape's values in place becomes.
_END_OF_LAYER = frozenset(
    {
        *("AddBackward0", "UnsafeViewBackward0", "ViewBackward0"),
        "torch::autograd::CopySlices",
    }
)

_THRESHOLDS = frozenset(
    getattr(home, word)
    for home in (functional, torch)
    for word in ("threshold", "threshold_")
    if hasattr(home, word)
)

# These hold modules that they never call, or call without their hooks.
_CALLED_AS_A_WHOLE = (nn.MultiheadAttention, torch.jit.ScriptModule)
_WRAPPERS = {"DataParallel", "DistributedDataParallel"}


# In the names of classes of other libraries: what is written out there, with a tanh or a sigmoid
# inside, is no tanh and no sigmoid.
_WRITTEN_OUT = re.compile("gelu|silu|swish|mish", re.IGNORECASE)


def _is_rectifier(threshold: Any, value: Any) -> bool:
    """Whether what is not above a threshold becomes 0, and all else is positive, as by a ReLU."""
    return all(type(each) in (int, float) for each in (threshold, value)) and (
        threshold >= 0 and value == 0
    )


def _is_zero(bound: Any) -> bool:
    """Whether it is the number 0, as such or as a tensor in the host's memory."""
    if isinstance(bound, torch.Tensor):
        return bound.numel() == 1 and bound.device.type == "cpu" and float(bound) == 0
    return type(bound) in (int, float) and bound == 0


def _is_layer(node: Any) -> bool:
    """Whether what this node of the graph returned is the output of a layer."""
    if node is None:
        return False
    if node.name() in _LAYERS:
        return True
    before = [at.name() for at, _ in node.next_functions if at is not None]
    return node.name() in _END_OF_LAYER and not _LAYERS.isdisjoint(before)


def _rectifies(word: str, args: Any, kwargs: Any, result: Any) -> bool:
    """Whether a clamp is the ReLU behind a layer, and not that of a distance or a margin."""
    if result.grad_fn is None or not any(_is_layer(at) for at, _ in result.grad_fn.next_functions):
        return False
    if word == "maximum":
        return any(_is_zero(each) for each in (*args, *kwargs.values()))
    least = args[1] if len(args) > 1 else kwargs.get("min")
    most = args[2] if len(args) > 2 else kwargs.get("max")
    return most is None and _is_zero(least)


def kind_of_call(function: Any, kind: str, args: Any, kwargs: Any, result: Any) -> str | None:
    """Of one of ACTIVATION_FUNCTIONS, whose kind may depend on what it was given.

    None if the call is no activation. Raises nothing.
    """
    if function in _CLAMPS:
        try:
            return "relu" if _rectifies(_CLAMPS[function], args, kwargs, result) else None
        except Exception:  # a tensor that has no values, or of a kind without a graph
            return None
    if function not in _THRESHOLDS:
        return kind
    threshold = args[1] if len(args) > 1 else kwargs.get("threshold")
    value = args[2] if len(args) > 2 else kwargs.get("value")
    return "relu" if _is_rectifier(threshold, value) else kind


def activation_kind(module: nn.Module) -> str:
    """`relu`, `tanh`, `sigmoid`, `smooth`, or `none` when the module is no activation function."""
    if isinstance(module, nn.Threshold) and _is_rectifier(module.threshold, module.value):
        return "relu"
    for base in type(module).__mro__:
        if base in _KIND_OF_TYPE:
            return _KIND_OF_TYPE[base]
    is_one = _WRITTEN_OUT.search(type(module).__name__) is not None
    return "smooth" if is_one and next(module.children(), None) is None else "none"


def class_name(module: nn.Module) -> str:
    """Of a module that was sharded in place (`fully_shard`), the class that it was before."""
    kind = type(module)
    if len(kind.__bases__) == 2 and kind.__bases__[0].__name__ in ("FSDPModule", "ReplicateModule"):
        kind = kind.__bases__[1]
    return kind.__name__


def is_compiled(module: nn.Module) -> bool:
    """Whether calling the module runs compiled code, in which hooks do not fire."""
    return type(module).__name__ == "OptimizedModule" or (
        getattr(module, "_compiled_call_impl", None) is not None
    )


def is_leaf(module: nn.Module) -> bool:
    """Whether the module's output is looked at, rather than that of the modules in it.

    What others return, blocks and the model itself, is taken where somebody asks for it by name.
    """
    return isinstance(module, _CALLED_AS_A_WHOLE) or next(module.children(), None) is None


def name_of_root(root: nn.Module, prefix: str) -> str:
    """What the model's own output is called, where its modules' names begin with `prefix`.

    Its class, where a module inside has the name that it would have.
    """
    name = prefix.rstrip(".") or "model"
    is_of_part = not prefix and any(name == part for part, _ in root.named_children())
    return class_name(root) if is_of_part else name


def unwrap(module: nn.Module) -> tuple[nn.Module, bool]:
    """The model that wrappers (DataParallel, DDP, torch.compile) were put around.

    The second value says whether it runs as compiled code, in which hooks do not fire.
    """
    compiled = is_compiled(module)
    while True:
        if type(module).__name__ in _WRAPPERS and isinstance(module.module, nn.Module):
            module = module.module
        elif type(module).__name__ == "OptimizedModule":
            module = module._orig_mod
        else:
            return module, compiled
        compiled = compiled or is_compiled(module)


def tensors_in(value: Any, depth: int = 4) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in nested tuples, lists, mappings, dataclasses; each with a suffix: `.1.0`."""
    if isinstance(value, torch.Tensor):
        yield "", value
    elif depth > 0 and isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            for suffix, tensor in tensors_in(item, depth - 1):
                yield f".{index}{suffix}", tensor
    elif depth > 0 and isinstance(value, Mapping):
        for key, item in value.items():
            for suffix, tensor in tensors_in(item, depth - 1):
                yield f".{key}{suffix}", tensor
    elif depth > 0 and dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            for suffix, tensor in tensors_in(getattr(value, field.name, None), depth - 1):
                yield f".{field.name}{suffix}", tensor
