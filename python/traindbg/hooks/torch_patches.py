"""The few places where PyTorch itself has to be listened to, put in and taken out without a trace.

A training says which number it minimises only by calling `backward()`, and how it got it only by
calling a loss function. Neither has a hook, so these functions are wrapped while somebody listens:
`torch.autograd.backward`, the losses of `torch.nn.functional`, `torch.amp.GradScaler.scale` (and
those of classes that are derived from it). Nor
has what changes gradients before the optimizer uses them: `GradScaler.unscale_`, `clip_grad_norm_`,
`clip_grad_value_`; nor the steps that `GradScaler.step` leaves out. Beside them are wrapped
`torch.jit.script`, which must see the originals, `torch.compile`, because what it compiles calls
no hooks, and the function by which PyTorch finds out that there are global hooks, to warn of them.
Optimizer steps, and modules and parameters that
are put into a module, have hooks of PyTorch's own.

Functions that were imported by name before are replaced where they are held, too
(`torch_holders`): in the namespaces of modules, and in models that are watched (`listen_in`).

Everything is counted: the first `acquire` puts it in, the last `release` takes it out. A wrapper
calls the original always, and first, unless that changes what is to be seen: gradients are looked
at before `GradScaler.unscale_` and the functions that clip them. It adds nothing inside compiled
code, and nothing at all while `state.listener` is None.
"""

from __future__ import annotations

import functools
import threading
import types
import weakref
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.nn import functional
from torch.nn.modules.module import (
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

from traindbg._core import NOT_HANDLED, NOTHING_TO_DO, ROLE_BITS
from traindbg.hooks.torch_compiled import others_have_global_hooks
from traindbg.hooks.torch_guard import guarded
from traindbg.hooks.torch_holders import swap_in_every_model, swap_in_model, swap_in_modules
from traindbg.hooks.torch_sums import per_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from traindbg._core import HotPath

# Looked up once, because they are asked at every step. Dynamo knows the function by any name.
_is_compiling = torch.compiler.is_compiling
_is_tracing = getattr(torch._C, "_is_tracing", torch.jit.is_tracing)
_transforms = getattr(getattr(torch._C, "_functorch", None), "peek_interpreter_stack", None)


def is_transforming() -> bool:
    """Whether torch.func (grad, vmap, ...) is at work: values are wrapped then, and not to be read.

    Their type is torch.Tensor all the same.
    """
    return _transforms is not None and _transforms() is not None


_GRADIENTS_BEFORE = ROLE_BITS["gradient_before"]

# Names in torch.nn.functional.
LOSSES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "cross_entropy",
    "ctc_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
)


class Listener(Protocol):
    """Who is told. Only the last two raise, and only when a stop was asked for."""

    def loss_computed(
        self, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None: ...
    def loss_scaled(self, scaled: Any, loss: Any) -> None: ...
    def backward_begins(self, tensors: Any) -> None: ...
    def gradients_will_change(self, parameters: list[Any]) -> None: ...
    def gradients_clipped(self, parameters: list[Any], norm: Any) -> None: ...
    def gradients_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None: ...
    def gradients_unscaled(self, optimizer: torch.optim.Optimizer) -> None: ...
    def compiler_used(self, target: Any) -> None: ...
    def transformed(self) -> None: ...
    def modules_changed(self) -> None: ...
    def optimizer_will_step(self, optimizer: torch.optim.Optimizer) -> None: ...
    def step_skipped(self, optimizer: torch.optim.Optimizer) -> None: ...
    def optimizer_stepped(self, optimizer: torch.optim.Optimizer) -> None: ...
    def step_ended(self, answer: int) -> None: ...


class _State(threading.local):
    inside_loss = False  # a loss function that calls another one counts once
    inside_clip = False  # and so does a function that clips


class _Shared:
    is_scripting = False
    listener: Listener | None = None
    hot: HotPath | None = None  # asked before the listener, which hears only of what it leaves over


state = _Shared()
_local = _State()
_users = 0
_undo: list[Callable[[], None]] = []
_pairs: list[tuple[Callable[..., Any], Callable[..., Any]]] = []  # functions, and ours
_models: list[weakref.ref[torch.nn.Module]] = []  # that were listened to
_models_hold_ours = False


def _listening_loss(
    name: str, original: Callable[..., Any], as_mean: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """`as_mean(name, value, args, kwargs)`: of a method, what is recorded of its value."""

    @functools.wraps(original)
    def loss_function(*args: Any, **kwargs: Any) -> Any:
        if _is_compiling() or state.listener is None or _local.inside_loss:
            return original(*args, **kwargs)
        _local.inside_loss = True
        try:
            value = original(*args, **kwargs)
        finally:
            _local.inside_loss = False
        listener = state.listener
        if listener is not None and is_transforming():
            listener.transformed()
        elif listener is not None and not _is_tracing():
            seen = value
            if as_mean is not None or kwargs.get("reduction") == "sum":
                seen = guarded("losses", as_mean or per_target, name, value, args, kwargs)
            hot = state.hot
            if hot is None or not hot.loss_computed(name, seen):
                given = args if as_mean is None else args[1:]  # without the method's object
                listener.loss_computed(name, seen, given, kwargs)
        return value

    return loss_function


def _listening_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if not _is_compiling():
            listener = state.listener
            if listener is not None:
                tensors = args[0] if args else kwargs.get("tensors")
                hot = state.hot
                if hot is None or not hot.backward_begins(tensors):
                    listener.backward_begins(tensors)
        return original(*args, **kwargs)

    return backward


def _listening_scale(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def scale(self: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        scaled = original(self, outputs, *args, **kwargs)
        listener = state.listener
        if listener is not None:
            listener.loss_scaled(scaled, outputs)
        return scaled

    return scale


def _listening_scaler_step(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def step(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        hot = state.hot
        steps = -1 if hot is None else hot.steps
        result = original(self, optimizer, *args, **kwargs)
        listener = state.listener
        if listener is not None and hot is not None and hot.steps == steps:
            listener.step_skipped(optimizer)
        return result

    return step


def _gradients_listener() -> Listener | None:
    """Who wants gradients at this step before they are unscaled and clipped."""
    hot = state.hot
    return state.listener if hot is not None and hot.due & _GRADIENTS_BEFORE else None


def _listening_unscale(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def unscale_(self: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if not _is_compiling() and getattr(self, "_enabled", False):
            listener = _gradients_listener()
            if listener is not None:
                listener.gradients_unscale(self, optimizer)
                result = original(self, optimizer, *args, **kwargs)
                listener.gradients_unscaled(optimizer)
                return result
        return original(self, optimizer, *args, **kwargs)

    return unscale_


def _listening_clip(norm_at: int | None, original: Callable[..., Any]) -> Callable[..., Any]:
    """`norm_at`: where among its arguments the function is given the norm; None: it returns it."""

    @functools.wraps(original)
    def clip(*args: Any, **kwargs: Any) -> Any:
        if _is_compiling():
            return original(*args, **kwargs)
        listener = _gradients_listener()
        if listener is None or _local.inside_clip:
            return original(*args, **kwargs)
        given = args[0] if args else kwargs.get("parameters")
        held = [given] if isinstance(given, torch.Tensor) else list(given or ())
        if held and not isinstance(given, (torch.Tensor, list, tuple)):  # it is used up now
            if args:
                args = (held, *args[1:])
            else:
                kwargs["parameters"] = held
        listener.gradients_will_change(held)
        _local.inside_clip = True
        try:
            result = original(*args, **kwargs)
        finally:
            _local.inside_clip = False
        norm = result
        if norm_at is not None:
            norm = args[norm_at] if len(args) > norm_at else kwargs.get("total_norm")
        listener.gradients_clipped(held, norm)
        return result

    return clip


def _scripting_with_originals(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def script(*args: Any, **kwargs: Any) -> Any:
        if state.is_scripting:  # it calls itself for what a module holds
            return original(*args, **kwargs)
        state.is_scripting = True
        wrapped = {name: getattr(functional, name) for name in LOSSES if hasattr(functional, name)}
        for name, function in wrapped.items():
            setattr(functional, name, getattr(function, "__wrapped__", function))
        models = [thing for thing in args if isinstance(thing, torch.nn.Module)]
        models = guarded("losses", _put_originals, models) or []
        try:
            return original(*args, **kwargs)
        finally:
            guarded("losses", _put_ours, models)
            for name, function in wrapped.items():
                setattr(functional, name, function)
            state.is_scripting = False

    return script


def _listening_compile(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(*args: Any, **kwargs: Any) -> Any:  # noqa: A001
        listener = state.listener
        if listener is not None:
            listener.compiler_used(args[0] if args else kwargs.get("model"))
        return original(*args, **kwargs)

    return compile


def _replace(
    owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    original = getattr(owner, name, None)
    if original is None:
        return
    # Of a function with two owners there is one of ours, as there was one of it.
    ours = next((known for function, known in _pairs if function is original), None)
    if ours is None:
        ours = make(original)
        if isinstance(owner, types.ModuleType) and not name.startswith("_"):
            _pairs.append((original, ours))
    setattr(owner, name, ours)

    def undo() -> None:
        # Somebody may have wrapped it again since; then ours stays inside theirs, and is silent.
        if getattr(owner, name, None) is ours:
            setattr(owner, name, original)

    _undo.append(undo)


def _put_ours(models: list[torch.nn.Module]) -> None:
    """Makes our functions those that are held by name, in modules and in these models."""
    global _models_hold_ours
    instead = {id(original): ours for original, ours in _pairs}
    swap_in_modules(instead)
    for model in models:
        _models_hold_ours |= swap_in_model(model, instead) > 0


def _put_originals(models: list[torch.nn.Module]) -> list[torch.nn.Module]:
    """The opposite. Returns the models that held some of ours."""
    instead = {id(ours): original for original, ours in _pairs}
    swap_in_modules(instead)
    return [model for model in models if swap_in_model(model, instead) > 0]


def _put_originals_everywhere() -> None:
    models = [model for known in _models if (model := known()) is not None]
    if _put_originals(models) or _models_hold_ours:  # then copies of them may, too
        swap_in_every_model({id(ours): original for original, ours in _pairs})


def listen_in(model: torch.nn.Module) -> None:
    """Hears also the functions that the modules of a model hold as attributes."""
    global _models_hold_ours
    _models[:] = [known for known in _models if known() is not None]
    _models.append(weakref.ref(model))
    held = swap_in_model(model, {id(original): ours for original, ours in _pairs})
    _models_hold_ours |= held > 0


def _looking_after(
    closure: Callable[..., Any], optimizer: torch.optim.Optimizer, listener: Listener
) -> Callable[..., Any]:
    """A closure after whose first call the step begins for the listener.

    An optimizer that is given one has it compute the gradients, so that those that are there when
    its step begins are the ones of the step before (Lightning trains so, and L-BFGS).
    """
    is_first = True

    @functools.wraps(closure)
    def computed(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_first
        value = closure(*args, **kwargs)
        if is_first:
            is_first = False
            listener.optimizer_will_step(optimizer)
        return value

    return computed


_also: set[tuple[Any, str]] = set()


def also_listen_to(owner: Any, function: str, name: str, as_mean: Callable[..., Any]) -> None:
    """Hears one more loss, the method `owner.function`, as `name`: until the last `release`.

    What is recorded of a value is `as_mean(name, value, args, kwargs)`.
    """
    if _users > 0 and (owner, function) not in _also:
        _also.add((owner, function))
        _replace(owner, function, lambda original: _listening_loss(name, original, as_mean))
        _undo.append(_also.clear)


def _before_step(
    optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    if _is_compiling():
        return None
    listener = state.listener
    if listener is None:
        return None
    hot = state.hot
    if hot is not None and hot.optimizer_will_step(optimizer):
        return None
    if len(args) > 1 and callable(args[1]):  # the first is the optimizer
        return (args[0], _looking_after(args[1], optimizer, listener), *args[2:]), kwargs
    if callable(kwargs.get("closure")):
        closure = _looking_after(kwargs["closure"], optimizer, listener)
        return args, {**kwargs, "closure": closure}
    listener.optimizer_will_step(optimizer)
    return None


def _after_step(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
    if not _is_compiling():
        listener = state.listener
        if listener is not None:
            hot = state.hot
            answer = NOT_HANDLED if hot is None else hot.optimizer_stepped(optimizer)
            if answer == NOT_HANDLED:
                listener.optimizer_stepped(optimizer)
            elif answer != NOTHING_TO_DO:
                listener.step_ended(answer)


def _registered(module: torch.nn.Module, name: str, value: Any) -> None:
    listener = state.listener
    if listener is not None and not _is_compiling():
        listener.modules_changed()


_scalers: set[type] = set()  # that are listened to
_SCALER_METHODS: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "scale": _listening_scale,
    "unscale_": _listening_unscale,
    "step": _listening_scaler_step,
}


def _listen_to_scalers(scaler: type) -> None:
    """Hears what a class of scalers and those that are derived from it do in methods of their own.

    So ShardedGradScaler of FSDP1, where it is loaded. One that calls the method of its base is
    heard there, too, which changes nothing.
    """
    if scaler in _scalers:
        return
    _scalers.add(scaler)
    for name, make in _SCALER_METHODS.items():
        if isinstance(vars(scaler).get(name), types.FunctionType):
            _replace(scaler, name, make)
    subclasses: list[type] = type.__subclasses__(scaler)
    for derived in subclasses:
        _listen_to_scalers(derived)


def _finding_its_class(original: Callable[..., Any]) -> Callable[..., Any]:
    """Of `GradScaler.__init__`: a scaler's class may be younger than the first `acquire`."""

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if _users > 0:
            guarded("gradients before", _listen_to_scalers, type(self))

    return init


def acquire() -> None:
    """Puts the wrappers in, unless they are. Every call needs a `release`."""
    global _users
    _users += 1
    if _users > 1:
        return
    for name in LOSSES:
        _replace(functional, name, functools.partial(_listening_loss, name))
    _replace(torch.autograd, "backward", _listening_backward)
    _replace(torch.jit, "script", _scripting_with_originals)
    _replace(torch, "compile", _listening_compile)
    _replace(torch.nn.modules.module, "_has_any_global_hook", lambda _: others_have_global_hooks)
    scaler = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
    _replace(scaler, "__init__", _finding_its_class)
    guarded("gradients before", _listen_to_scalers, scaler)
    for owner in (torch.nn.utils, torch.nn.utils.clip_grad):
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            _replace(owner, name, functools.partial(_listening_clip, None))
    # What `clip_grad_norm_` calls: so it is heard, too, where it is held in some other place.
    _replace(torch.nn.utils, "clip_grads_with_norm_", functools.partial(_listening_clip, 2))
    inner = "_clip_grads_with_norm_"
    _replace(torch.nn.utils.clip_grad, inner, functools.partial(_listening_clip, 2))
    guarded("losses", _put_ours, [])
    before = register_optimizer_step_pre_hook(_before_step)
    after = register_optimizer_step_post_hook(_after_step)
    _undo.extend((before.remove, after.remove))
    _undo.append(register_module_module_registration_hook(_registered).remove)
    _undo.append(register_module_parameter_registration_hook(_registered).remove)


def release() -> None:
    """Takes the wrappers out when nobody needs them any more."""
    global _users, _models_hold_ours
    _users -= 1
    if _users > 0:
        return
    _users = 0
    while _undo:
        _undo.pop()()
    guarded("losses", _put_originals_everywhere)
    _pairs.clear()
    _scalers.clear()
    _models.clear()
    _models_hold_ours = False
