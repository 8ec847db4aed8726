"""A copy of a model on which forward passes leave nothing in the training, or why there is none.

The copy has no hooks, and buffers and counters of its own. What would make it reach into the
training is looked for before: functions and weak references that it keeps of the model itself. A
pass of the copy that is about to use one of the training's own tensors is left, before it does.
"""

from __future__ import annotations

import copy
import functools
import os
import weakref
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

from traindbg.hooks.torch_compiled import others_have_global_hooks
from traindbg.hooks.torch_device import capturing_graph

if TYPE_CHECKING:
    from collections.abc import Iterator

    from traindbg.hooks.torch_probe_state import ProcessState

_DEPTH = 3  # of containers among a module's attributes
_SHARE = 0.25  # of the memory that is free
_DEVICES = frozenset({"cpu", "cuda"})
_PLAIN = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor))
_NOT_HELD = ("_modules", "_parameters", "_flat_weight_refs")
# Those of a tensor's methods that write into it and do not end with one underscore.
_WRITING = frozenset(
    {
        "__iadd__", "__iand__", "__idiv__", "__ifloordiv__", "__imod__", "__imul__", "__ior__",
        "__ipow__", "__isub__", "__itruediv__", "__ixor__", "__setitem__",
    }
)  # fmt: skip


# By which values are rounded to steps, as many make of the range of a batch's values.
_ROUNDING = frozenset({"round", "round_", "quantize_per_tensor", "quantize_per_channel"})


class NotProbedError(Exception):
    """Says why."""


def _parts_of(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """`value`, or what is in it where it is a container."""
    if depth > 0 and isinstance(value, dict):
        for item in list(value.values()):
            yield from _parts_of(item, depth - 1)
    elif depth > 0 and isinstance(value, (list, tuple, set)):
        for item in list(value):
            yield from _parts_of(item, depth - 1)
    else:
        yield value


def _attributes_of(module: torch.nn.Module) -> Iterator[Any]:
    """What a module holds, but for modules, parameters and hooks."""
    for name, value in list(vars(module).items()):
        if name not in _NOT_HELD and "_hooks" not in name:
            yield from _parts_of(value)


def _refers_to_model(value: Any) -> bool:
    """Whether a function has a module, or what is trained, in itself."""

    def is_of_model(held: Any) -> bool:
        if isinstance(held, torch.Tensor):
            return bool(held.requires_grad)
        return isinstance(held, torch.nn.Module) or _refers_to_model(held)

    if isinstance(value, functools.partial):
        return any(map(is_of_model, (value.func, *value.args, *value.keywords.values())))
    if not isinstance(value, FunctionType):
        return False
    held = [*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    for cell in value.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # it is empty
            continue
    return any(is_of_model(each) for each in held if each is not value)


def _is_of_trainer(value: Any) -> bool:
    if isinstance(value, (torch.optim.Optimizer, torch.utils.data.DataLoader)):
        return True
    return any(each.__name__ == "Trainer" for each in type(value).__mro__)


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _look_at_tensors(model: torch.nn.Module) -> None:
    sizes: dict[torch.device, dict[int, int]] = {}
    tensors = [*model.parameters(), *model.buffers()]
    for module in model.modules():
        tensors += [each for each in _attributes_of(module) if isinstance(each, torch.Tensor)]
    for tensor in tensors:
        if type(tensor) not in _PLAIN:
            raise NotProbedError(f"it has a tensor of the class {type(tensor).__name__}")
        if tensor.device.type not in _DEVICES or tensor.layout is not torch.strided:
            raise NotProbedError(f"it has a tensor on {tensor.device}, of layout {tensor.layout}")
        if capturing_graph(tensor):
            raise NotProbedError("a CUDA graph is captured")
        storage = tensor.untyped_storage()
        sizes.setdefault(tensor.device, {})[storage.data_ptr()] = storage.nbytes()
    for device, each in sizes.items():
        if sum(each.values()) > _SHARE * _free_bytes(device):
            raise NotProbedError(f"a copy takes more than a quarter of what is free on {device}")


def _look_at_modules(model: torch.nn.Module) -> None:
    inside = set(map(id, model.modules()))
    for module in model.modules():
        name = type(module).__name__
        if isinstance(module, torch.jit.ScriptModule):
            raise NotProbedError("torch.jit's code is in it")
        if name in ("OptimizedModule", "FullyShardedDataParallel", "DistributedDataParallel"):
            raise NotProbedError(f"a {name} is in it")
        for value in _attributes_of(module):
            if isinstance(value, MethodType):
                is_strange = id(value.__self__) not in inside
                is_strange = is_strange and isinstance(value.__self__, torch.nn.Module)
            elif isinstance(value, weakref.ref):
                is_strange = isinstance(value(), (torch.nn.Module, torch.Tensor))
            else:
                is_strange = _refers_to_model(value)
            if is_strange:
                raise NotProbedError(f"a {name} keeps a reference that would not be to the copy")
            if _is_of_trainer(value):
                raise NotProbedError(f"a {name} holds a {type(value).__name__}")


def look_at_process() -> None:
    """Raises NotProbedError where it is at something that hears, or shares, each forward pass."""
    distributed = torch.distributed
    is_in_group = distributed.is_available() and distributed.is_initialized()
    if is_in_group and int(distributed.get_world_size()) > 1:
        raise NotProbedError("other processes train it, too")
    if others_have_global_hooks():
        raise NotProbedError("hooks are set for the modules of all models")
    is_new = hasattr(torch._C, "_EnableTorchFunction") and hasattr(torch, "get_autocast_dtype")
    if not is_new:
        raise NotProbedError("this PyTorch is too old")
    heard = torch.overrides._get_current_function_mode_stack()
    others = [type(mode).__name__ for mode in heard if type(mode).__name__ != "DeviceContext"]
    if others or torch._C._len_torch_dispatch_stack() != 0:
        raise NotProbedError("a mode hears each operation")


def _put_in_place(model: torch.nn.Module, memo: dict[int, Any]) -> None:
    """Tells `deepcopy` what stands for what it should not, or cannot, copy."""
    for module in model.modules():
        for name, value in vars(module).items():
            if "_hooks" in name and isinstance(value, dict):
                memo[id(value)] = type(value)()
        for value in _attributes_of(module):
            if isinstance(value, torch.Tensor) and not value.is_leaf:
                memo[id(value)] = value.detach().clone()
            elif isinstance(value, torch.Generator):
                memo[id(value)] = torch.Generator(value.device).set_state(value.get_state())


def copy_of(model: torch.nn.Module) -> torch.nn.Module:
    """In evaluation mode. Raises NotProbedError."""
    _look_at_modules(model)
    _look_at_tensors(model)
    memo: dict[int, Any] = {}
    _put_in_place(model, memo)
    try:
        made = copy.deepcopy(model, memo)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:300]
        raise NotProbedError(f"it cannot be copied: {reason}") from None
    own = set(map(id, model.modules()))
    tensors = {t.untyped_storage().data_ptr() for t in (*model.parameters(), *model.buffers())}
    for module in made.modules():
        if id(module) in own:
            raise NotProbedError(f"copies of a {type(module).__name__} are the same object")
        module.training = False
        if isinstance(module, torch.nn.RNNBase):
            module.flatten_parameters()
    for tensor in (*made.parameters(), *made.buffers()):
        pointer = tensor.untyped_storage().data_ptr()
        if pointer != 0 and pointer in tensors:
            raise NotProbedError("its copy has the same memory")
    return made


class KeepsApart(TorchFunctionMode):  # type: ignore[misc]
    """Raises NotProbedError before a function is given a tensor that the training owns."""

    def __init__(self, model: torch.nn.Module, made: torch.nn.Module, state: ProcessState) -> None:
        super().__init__()
        self._foreign = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
        self.rounds = False  # a function was called that rounds values to steps
        self._of_files = state.tensors
        self._generators = state.generators | {
            id(value)
            for module in made.modules()
            for value in _attributes_of(module)
            if isinstance(value, torch.Generator)
        }

    def _look(self, values: Any, depth: int = 2) -> None:
        for value in values:
            if id(value) in self._foreign:
                raise NotProbedError("its copy would use the training's own tensors")
            if depth > 0 and isinstance(value, (list, tuple)):
                self._look(value, depth - 1)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self._look(args)
        self._look(kwargs.values())
        name = str(getattr(func, "__name__", ""))
        self.rounds = self.rounds or name in _ROUNDING or name.startswith("fake_quantize")
        if self._of_files:
            writes = name in _WRITING or (name.endswith("_") and not name.endswith("__"))
            written = kwargs.get("out", args[0] if writes and args else None)
            if id(written) in self._of_files:
                raise NotProbedError("its forward writes into a tensor outside of it")
        generator = kwargs.get("generator")
        if generator is not None and id(generator) not in self._generators:
            raise NotProbedError("its forward draws from a generator outside of it")
        return func(*args, **kwargs)
