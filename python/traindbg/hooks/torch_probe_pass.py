"""Forward passes of a copy of a model, over the batch of a step or over a changed one.

Each begins with the same random numbers, in the autocast state of the training's own pass, without
gradients; its inputs are copies. Nobody hears of it: neither the recording nor the user's hooks.
"""

from __future__ import annotations

import contextlib
import enum
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks import torch_patches as patches
from traindbg.hooks.torch_names import tensors_in
from traindbg.hooks.torch_probe_copy import KeepsApart, NotProbedError, copy_of, look_at_process
from traindbg.hooks.torch_probe_state import ProcessState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Change = Callable[[torch.Tensor], torch.Tensor]

_DEPTH = 4  # of containers among what a model is given
_SIMPLE = (int, float, complex, bool, str, bytes, type(None), torch.dtype, torch.device, torch.Size)
_MOST_BYTES = 1 << 28  # of modules' outputs that are kept to find the first one


class Autocast(NamedTuple):
    """As it is for one type of device."""

    device: str
    dtype: torch.dtype


def autocasts() -> list[Autocast]:
    """Those that are on now."""
    if not hasattr(torch, "get_autocast_dtype"):
        return []
    return [
        Autocast(device, torch.get_autocast_dtype(device))
        for device in ("cpu", "cuda")
        if torch.is_autocast_enabled(device)
    ]


class Given(NamedTuple):
    """What a model was given in one call. Holds the tensors, until the step ends."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    autocasts: list[Autocast]
    versions: list[int]  # of the tensors, to know whether they were written to

    def tensors(self) -> list[torch.Tensor]:
        return [tensor for _, tensor in tensors_in((self.args, self.kwargs), _DEPTH)]

    def is_unchanged(self) -> bool:
        return [tensor._version for tensor in self.tensors()] == self.versions


def given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Given:
    """What a model is given, and how it computes now."""
    held = Given(args, dict(kwargs), autocasts(), [])
    held.versions.extend(tensor._version for tensor in held.tensors())
    return held


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


class Passes:
    """Of one copy, made when this is entered; all is put back when it is left. One thread."""

    def __init__(self, model: torch.nn.Module, held: Given) -> None:
        self._model = model
        self._held = held

    def __enter__(self) -> Passes:
        look_at_process()
        self._state = ProcessState(self._model)
        # Nothing that is called from here on is of the training.
        self._heard = patches.state.listener, patches.state.hot, patches.state.threads
        self._before = torch.is_grad_enabled()
        patches.state.listen(None, None, None)
        torch._C._set_grad_enabled(False)
        try:
            self.copy = copy_of(self._model)
            self._apart = KeepsApart(self._model, self.copy, self._state)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: Any) -> None:
        try:
            self._state.put_back()
        finally:
            torch._C._set_grad_enabled(self._before)
            patches.state.listen(*self._heard)

    @property
    def rounds(self) -> bool:
        """Whether a pass rounded values to steps: quantisation, for which batches have ranges."""
        return self._apart.rounds

    @contextlib.contextmanager
    def _as_in_training(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for each in self._held.autocasts:
                stack.enter_context(torch.autocast(each.device, each.dtype, cache_enabled=False))
            stack.enter_context(torch._C._EnableTorchFunction())
            stack.enter_context(self._apart)
            yield

    def outputs(self, change: Change | None = None) -> list[torch.Tensor]:
        """The tensors that a pass returns; `change` is applied to each of the inputs."""
        args, kwargs = _mapped((self._held.args, self._held.kwargs), change or _copied)
        self._state.rewind()
        with self._as_in_training():
            returned = self.copy(*args, **kwargs)
        return [tensor for _, tensor in tensors_in(returned)]

    def outputs_of_modules(self, change: Change | None = None) -> list[tuple[str, torch.Tensor]]:
        """Names and outputs of the modules inside, in the order in which they return."""
        found: list[tuple[str, torch.Tensor]] = []
        names = {id(module): name for name, module in self.copy.named_modules() if name}
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
            for module in self.copy.modules()
            if id(module) in names
        ]
        try:
            self.outputs(change)
        finally:
            for handle in handles:
                handle.remove()
        return found
