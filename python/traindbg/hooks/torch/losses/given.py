"""How much of its input the first layer with weights is given as zeros, in training and out of it.

Augmentation is often part of a model, on in training mode only (masks over a spectrogram, erased
parts of a picture): what the model itself is given is whole then. Of a training step `Outputs`
hears that layer (`losses.collapse`); here are the evaluations: a global hook that is taken off when
the first such layer has run. No tensor is kept.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules.module import register_module_forward_hook

from traindbg.hooks.torch.base.compiled import compiler_in_use, our_hooks
from traindbg.hooks.torch.base.device import own_operations
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.losses.collapse import has_matrix, share_of_zeros

if TYPE_CHECKING:
    from torch import nn

_is_compiling = torch.compiler.is_compiling


class GivenInEvaluation:
    """One per recording, one thread."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._thread = 0
        self._model: weakref.ref[nn.Module] | None = None
        self.forget()

    def forget(self) -> None:
        """Another model or training begins."""
        self.end()
        self._layer: weakref.ref[nn.Module] | None = None
        self._zeros: list[float | torch.Tensor] = []

    def listen(self, model: nn.Module) -> None:
        """A forward pass without gradients of a model in evaluation mode begins."""
        self.end()
        if compiler_in_use():
            return
        self._thread, self._model = threading.get_ident(), weakref.ref(model)
        self._handle = register_module_forward_hook(self._called)
        our_hooks.add(self._handle.id)

    def end(self) -> None:
        """The pass is over, whether or not there was such a layer."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.remove()
            our_hooks.discard(handle.id)

    def zeros_of(self, layer: nn.Module) -> list[float | torch.Tensor]:
        """The share of zeros at each look, if it was this layer that was the first."""
        known = self._layer() if self._layer is not None else None
        return list(self._zeros) if known is layer else []

    def _called(self, module: nn.Module, args: Any, output: Any) -> None:
        if _is_compiling() or threading.get_ident() != self._thread:
            return
        if module is (self._model() if self._model is not None else None):
            self.end()  # no such layer
            return
        with own_operations():
            is_wanted = has_matrix(module)
        if is_wanted:
            self.end()
            guarded("outputs", self._take, module, args)

    def _take(self, module: nn.Module, args: Any) -> None:
        if torch.is_grad_enabled() or torch.jit.is_tracing():
            return
        found = share_of_zeros(args[0]) if args else None
        if found is None:
            return
        if self._layer is None or self._layer() is not module:
            self._layer, self._zeros = weakref.ref(module), []
        self._zeros.append(found)
