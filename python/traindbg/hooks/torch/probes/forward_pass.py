"""What a probe computes with: the model and what it was given, in a process of its own."""

from __future__ import annotations

import contextlib
import enum
import random
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.overrides import TorchFunctionMode

from traindbg.hooks.torch.base.names import tensors_in
from traindbg.hooks.torch.probes.apart import NotProbedError
from traindbg.hooks.torch.steps import patches

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Change = Callable[[torch.Tensor], torch.Tensor]

_DEPTH = 4  # of containers among what a model is given
_SIMPLE = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
_MOST_BYTES = 1 << 28  # of modules' outputs that are kept to find the first one
ON_CPU = "probes are made on the CPU"
_PLAIN = (torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.Tensor))
_SPREAD = frozenset({"DataParallel", "DistributedDataParallel", "FullyShardedDataParallel"})
# By which values are rounded to steps, as many make of the range of a batch's values.
_ROUNDING = frozenset({"round", "round_", "quantize_per_tensor", "quantize_per_channel"})


class Given(NamedTuple):
    """What a model was given in one call. Holds the tensors, until the step ends."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    autocast: torch.dtype | None  # of the CPU's, where it is on
    versions: list[int]  # of the tensors, to know whether they were written to

    def tensors(self) -> list[torch.Tensor]:
        return [tensor for _, tensor in tensors_in((self.args, self.kwargs), _DEPTH)]

    def is_unchanged(self) -> bool:
        return [tensor._version for tensor in self.tensors()] == self.versions


def _autocast() -> torch.dtype | None:
    if hasattr(torch, "get_autocast_dtype"):
        is_on, dtype = torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")
    else:
        is_on, dtype = torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype()
    return dtype if is_on else None


def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given | None:
    """What a model is given, and how it computes now. None: not of tensors that can be asked."""
    held = Given(args, dict(kwargs), _autocast(), [])
    tensors = held.tensors()
    if any(tensor.is_inference() for tensor in tensors):
        return None
    held.versions.extend(tensor._version for tensor in tensors)
    return held


def look_at(model: torch.nn.Module) -> None:
    """Raises NotProbedError where a child of the process cannot compute what the model does."""
    distributed = torch.distributed
    is_in_group = distributed.is_available() and distributed.is_initialized()
    if is_in_group and int(distributed.get_world_size()) > 1:
        raise NotProbedError("other processes train it, too")
    for module in model.modules():
        names = {each.__name__ for each in type(module).__mro__}
        if names & _SPREAD:
            raise NotProbedError(f"a {type(module).__name__} is in it")
    for tensor in (*model.parameters(), *model.buffers()):
        if type(tensor) not in _PLAIN:
            raise NotProbedError(f"it has a tensor of the class {type(tensor).__name__}")
        if tensor.device.type != "cpu":
            raise NotProbedError(f"it has a tensor on {tensor.device}: {ON_CPU}")
        if tensor.layout is torch.strided and tensor.is_shared():
            raise NotProbedError("it has a tensor that processes share")


def _mapped(value: Any, change: Change, depth: int = _DEPTH + 1) -> Any:
    """`value` with copies of its containers, and `change` of each tensor."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, (*_SIMPLE, enum.Enum)):
        return value
    if depth > 0 and type(value) in (tuple, list):
        return type(value)(_mapped(item, change, depth - 1) for item in value)
    if depth > 0 and isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(item, change, depth - 1) for item in value))
    if depth > 0 and type(value) is dict:
        return {key: _mapped(item, change, depth - 1) for key, item in value.items()}
    raise NotProbedError(f"it is given a {type(value).__name__}, which may be changed by a pass")


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().clone()


class _Rounding(TorchFunctionMode):  # type: ignore[misc]
    """Hears whether values are rounded to steps."""

    heard = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(getattr(func, "__name__", ""))
        self.heard = self.heard or name in _ROUNDING or name.startswith("fake_quantize")
        return func(*args, **(kwargs or {}))


class Passes:
    """Forward passes in evaluation mode. To be made in a child: it changes the model for good."""

    def __init__(self, model: torch.nn.Module, held: Given) -> None:
        self._model = model
        self._held = held
        self._rounding = _Rounding()
        patches.state.listen(None, None, None)  # nothing that is called from here on is recorded
        torch.set_grad_enabled(False)
        of_all = vars(torch.nn.modules.module)
        for name in [name for name in of_all if name.startswith("_global_") and "_hooks" in name]:
            if isinstance(of_all[name], dict):
                of_all[name].clear()
        for module in model.modules():
            module.training = False
            for name, value in vars(module).items():
                if "_hooks" in name and isinstance(value, dict):
                    value.clear()

    @property
    def rounds(self) -> bool:
        """Whether a pass rounded values to steps: quantisation, for which batches have ranges."""
        return self._rounding.heard

    @contextlib.contextmanager
    def _as_in_training(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self._held.autocast is not None:
                stack.enter_context(torch.autocast("cpu", self._held.autocast, cache_enabled=False))
            if hasattr(torch._C, "_EnableTorchFunction"):
                stack.enter_context(torch._C._EnableTorchFunction())
            stack.enter_context(self._rounding)
            yield

    def outputs(self, change: Change | None = None) -> list[torch.Tensor]:
        """The tensors that a pass returns; `change` is applied to each of the inputs."""
        args, kwargs = _mapped((self._held.args, self._held.kwargs), change or _copied)
        torch.manual_seed(0)  # each pass draws the same
        random.seed(0)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(0)
        with self._as_in_training():
            returned = self._model(*args, **kwargs)
        return [tensor for _, tensor in tensors_in(returned)]

    def outputs_of_modules(self, change: Change | None = None) -> list[tuple[str, torch.Tensor]]:
        """Names and outputs of the modules inside, in the order in which they return."""
        found: list[tuple[str, torch.Tensor]] = []
        names = {id(module): name for name, module in self._model.named_modules() if name}
        left = [_MOST_BYTES]

        def returns(module: torch.nn.Module, _: Any, output: Any) -> None:
            for _, tensor in tensors_in(output):
                size = tensor.numel() * tensor.element_size()
                if size <= left[0]:
                    left[0] -= size
                    found.append((names[id(module)], _copied(tensor)))
                return

        handles = [
            module.register_forward_hook(returns)
            for module in self._model.modules()
            if id(module) in names
        ]
        try:
            self.outputs(change)
        finally:
            for handle in handles:
                handle.remove()
        return found
