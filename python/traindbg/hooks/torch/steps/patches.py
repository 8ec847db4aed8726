"""The few places where PyTorch itself has to be listened to, put in and taken out without a trace.

A training says which number it minimises only by calling `backward()`, and how it got it only by
calling a loss function. Neither has a hook, so these functions are listened to while somebody wants
it: `torch.autograd.backward`, the losses of `torch.nn.functional`, `torch.amp.GradScaler.scale`
(and those of classes that are derived from it). Nor has what changes gradients before the optimizer
uses them: `GradScaler.unscale_`, `clip_grad_norm_`, `clip_grad_value_`, `all_reduce`; nor the steps
that `GradScaler.step` leaves out; nor a `DataLoader` that is asked for its batches; nor what is
loaded from a checkpoint (`updates.resume`), and which weights are kept, loaded and saved
(`steps.weights_kept`); nor a log-probability (`losses.densities`); nor where an evaluation may
begin (`evaluations.standby`); nor, while no optimizer steps, `torch.autograd.grad`. Beside them are
`torch.jit.script`, which must see the originals, `torch.compile`, because what it compiles calls no
hooks, `torch.export.export`, which cannot read a model with hooks, and the function by which
PyTorch finds out that there are global hooks, to warn of them. Optimizer steps, and modules and
parameters that are put into a module, have hooks of PyTorch's own.

A function stays the same object: it is given other code, which calls ours, and its own code back
(`_listen_inside`). So it is heard wherever somebody holds it, imported by name, in a
`functools.partial` or as an attribute of a model, and it can be pickled and compared as ever.
Methods are replaced in their classes. What is called at every step, losses and `backward`, goes
through native code (`_core.Listening`), which leaves to the wrappers here what is not ordinary;
compilers, which cannot read that, find the wrappers.

Everything is counted: the first `acquire` puts it in, the last `release` takes it out. What is put
in calls the original always, and first, unless that changes what is to be seen: gradients are
looked at before `GradScaler.unscale_` and the functions that clip them. It adds nothing inside
compiled code, and nothing at all while `state.listener` is None.
"""

from __future__ import annotations

import copy
import functools
import inspect
import threading
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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

from traindbg._core import NOT_HANDLED, NOTHING_TO_DO, ROLE_BITS, Listening
from traindbg.hooks.torch.base.compiled import others_have_global_hooks
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.shards import wrappers
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.base.transforms import is_transforming
from traindbg.hooks.torch.data.loaders import listening_init, listening_iter
from traindbg.hooks.torch.evaluations.modes import listening_eval, modes
from traindbg.hooks.torch.evaluations.standby import listening_switch, listening_train
from traindbg.hooks.torch.evaluations.written import listening_number
from traindbg.hooks.torch.labels.loader_labels import listening_next
from traindbg.hooks.torch.losses import densities
from traindbg.hooks.torch.losses.arguments import prediction_first, without_weights
from traindbg.hooks.torch.losses.root import mark_sum
from traindbg.hooks.torch.losses.sums import per_target
from traindbg.hooks.torch.steps.weights_kept import (
    KeptWeights,
    listening_loaded,
    listening_read,
    listening_save,
    listening_taken,
    states,
)
from traindbg.hooks.torch.updates.drawn import drawn
from traindbg.hooks.torch.updates.reductions import listening_reduce
from traindbg.hooks.torch.updates.resume import (
    checkpoints,
    listening_load,
    listening_model,
    listening_optimizer,
    listening_state,
)
from traindbg.hooks.torch.updates.schedules import LISTENED, schedules

if TYPE_CHECKING:
    from collections.abc import Sequence

    from traindbg._core import HotPath
    from traindbg.hooks.torch.steps.threads import Threads
    from traindbg.hooks.torch.updates.corrections import Corrections

# Looked up once, because they are asked at every step. Dynamo knows the function by any name.
_is_compiling = torch.compiler.is_compiling
# The same, in a third of the time, but for code that a compiler runs and does not read: what is not
# ordinary asks about that.
_is_read = getattr(torch.compiler, "is_dynamo_compiling", _is_compiling)
_is_tracing = getattr(torch._C, "_is_tracing", torch.jit.is_tracing)

# In `HotPath.due` while no optimizer steps (`steps.by_hand`), or while some do inside of the pass
# (`steps.in_backward`): the ends of passes are heard. No role of a tensor.
ENDS_OF_PASSES = 1 << 28
_CLIPS = ROLE_BITS["gradient_before"] | ENDS_OF_PASSES
_LOOP = ROLE_BITS["loop"]
_ENDS = _LOOP | ENDS_OF_PASSES

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
    "linear_cross_entropy",
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


# Of gradients; `no_grad` calls the first.
_SWITCHES: dict[type, tuple[str, ...]] = {
    torch.set_grad_enabled: ("__init__", "__enter__", "__exit__"),
    torch.inference_mode: ("__enter__", "__exit__"),
    torch.enable_grad: ("__exit__",),
}


_NUMBERS = ("item", "__float__")  # of a tensor
_number_undo: list[Callable[[], None]] = []


class Listener(Protocol):
    """Who is told. Only the last two raise, and only when a stop was asked for."""

    weights: KeptWeights

    @property
    def is_evaluating(self) -> bool: ...
    def loss_computed(
        self, name: str, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None: ...
    def loss_scaled(self, scaled: Any, loss: Any, scaler: Any) -> None: ...
    def backward_begins(self, tensors: Any, retains: bool) -> None: ...
    def backward_ended(self, retains: bool) -> None: ...
    def grad_begins(
        self, outputs: Any, inputs: Sequence[Any], retains: bool, goes_on: bool
    ) -> None: ...
    def grad_ended(self, inputs: Sequence[Any], gradients: Any, retains: bool) -> None: ...
    def gradients_will_change(self, parameters: list[Any]) -> None: ...
    def gradients_clipped(self, parameters: list[Any], norm: Any, limit: Any) -> None: ...
    def gradients_unscale(self, scaler: Any, optimizer: torch.optim.Optimizer) -> None: ...
    def gradients_unscaled(self, optimizer: torch.optim.Optimizer) -> None: ...
    def compiler_used(self, target: Any) -> None: ...
    def export_begins(self) -> None: ...
    def export_ends(self) -> None: ...
    def transformed(self) -> None: ...
    def modules_changed(self) -> None: ...
    def reduced(self, tensor: Any) -> None: ...
    def optimizer_will_step(self, optimizer: torch.optim.Optimizer) -> None: ...
    def step_skipped(self, optimizer: torch.optim.Optimizer) -> None: ...
    def optimizer_stepped(self, optimizer: torch.optim.Optimizer) -> None: ...
    def step_ended(self, answer: int) -> None: ...


class _State(threading.local):
    inside_clip = False  # a function that clips and calls another one counts once


class _Shared(Protocol):
    """What all threads share. Only one of them may have a listener: see `steps.threads`."""

    is_scripting: bool
    corrections: Corrections | None  # of optimizer steps; where somebody wants any
    inside_loss: bool  # in this thread: a loss function that calls another one counts once

    @property
    def listener(self) -> Listener | None: ...
    @property
    def hot(self) -> HotPath | None:
        """Asked before the listener, which hears only of what it leaves over."""

    @property
    def threads(self) -> Threads | None:
        """Of the listener."""

    def listen(
        self, listener: Listener | None, hot: HotPath | None, threads: Threads | None
    ) -> None:
        """Has somebody told from now on; None: nobody."""

    def heard_loss(
        self, original: Callable[..., Any], rest: Callable[..., object], name: str
    ) -> Callable[..., Any]:
        """A loss function; `rest(value, args, kwargs)` hears of what is not handled."""

    def heard_backward(
        self, original: Callable[..., Any], rest: Callable[..., Any]
    ) -> Callable[..., Any]:
        """`torch.autograd.backward`; `rest` is called in its place where it is not."""

    def optimizer_will_step(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether there is nothing more to do."""

    def optimizer_stepped(self, optimizer: torch.optim.Optimizer) -> int:
        """See `HotPath.optimizer_stepped`."""


state: _Shared = Listening(_is_tracing)
_local = _State()
_users = 0
_undo: list[Callable[[], None]] = []
_entered: dict[types.FunctionType, _Listened] = {}  # functions that call ours now


def _listening_loss(
    name: str, original: Callable[..., Any], as_mean: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """`as_mean(name, value, args, kwargs)`: of a method, what is recorded of its value."""

    @functools.wraps(original)
    def loss_function(*args: Any, **kwargs: Any) -> Any:
        if _is_compiling() or state.listener is None or state.inside_loss:
            return original(*args, **kwargs)
        state.inside_loss = True
        try:
            value = original(*args, **kwargs)
        finally:
            state.inside_loss = False
        _loss_computed(name, as_mean, value, args, kwargs)
        return value

    return loss_function


def _loss_computed(
    name: str,
    as_mean: Callable[..., Any] | None,
    value: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    listener = None if _is_compiling() else state.listener
    if listener is not None and is_transforming():
        listener.transformed()
    elif listener is not None and not _is_tracing():
        args, kwargs = without_weights(name, args, kwargs)
        seen = value
        if as_mean is not None or kwargs.get("reduction") == "sum":
            seen = guarded("means of losses", as_mean or per_target, name, value, args, kwargs)
        hot = state.hot
        if seen is not value and as_mean is None and hot is not None and hot.due & _LOOP:
            guarded("sums of losses", mark_sum, name, value, args, kwargs)
        if hot is None or not hot.loss_computed(name, seen):
            given = args if as_mean is None else args[1:]  # without the method's object
            given, kwargs = prediction_first(name, given, kwargs)
            listener.loss_computed(name, seen, given, kwargs)


def _native_loss(
    name: str, original: Callable[..., Any], ours: Callable[..., Any]
) -> Callable[..., Any]:
    return state.heard_loss(original, functools.partial(_loss_computed, name, None), name)


def _listening_backward(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def backward(*args: Any, **kwargs: Any) -> Any:
        if not _is_compiling():
            threads = state.threads
            root = args[0] if args else kwargs.get("tensors")
            is_heard = threads is None or threads.hears_backward(root)
            listener = state.listener if is_heard else None
            if listener is not None:
                tensors = args[0] if args else kwargs.get("tensors")
                retains = bool(args[2] if len(args) > 2 else kwargs.get("retain_graph"))
                hot = state.hot
                if hot is None or not hot.backward_begins(tensors, retains):
                    listener.backward_begins(tensors, retains)
                    listener, hot = state.listener or listener, state.hot  # a recording may begin
                if hot is not None and hot.due & _ENDS:
                    result = original(*args, **kwargs)
                    listener.backward_ended(retains)
                    return result
        return original(*args, **kwargs)

    return backward


def _listening_grad(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def grad(*args: Any, **kwargs: Any) -> Any:
        listener = None if _is_compiling() or is_transforming() else state.listener
        if listener is None:
            return original(*args, **kwargs)
        outputs = args[0] if args else kwargs.get("outputs")
        inputs = args[1] if len(args) > 1 else kwargs.get("inputs")
        goes_on = bool(args[4] if len(args) > 4 else kwargs.get("create_graph"))
        retains = args[3] if len(args) > 3 else kwargs.get("retain_graph")
        retains = goes_on if retains is None else bool(retains)
        held = [inputs] if isinstance(inputs, torch.Tensor) else inputs
        if not isinstance(held, (list, tuple)):
            return original(*args, **kwargs)
        listener.grad_begins(outputs, held, retains, goes_on)
        result = original(*args, **kwargs)
        listener = state.listener  # a recording may have begun
        if listener is not None:
            listener.grad_ended(held, result, retains)
        return result

    return grad


def _listening_scale(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def scale(self: Any, outputs: Any, *args: Any, **kwargs: Any) -> Any:
        scaled = original(self, outputs, *args, **kwargs)
        listener = state.listener
        if listener is not None:
            listener.loss_scaled(scaled, outputs, self)
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
    return state.listener if hot is not None and hot.due & _CLIPS else None


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
        guarded("sources", sources.note, "clip")
        norm = result
        if norm_at is not None:
            norm = args[norm_at] if len(args) > norm_at else kwargs.get("total_norm")
        limit = args[1] if len(args) > 1 else kwargs.get("max_norm")
        listener.gradients_clipped(held, norm, limit if norm is not None else None)
        return result

    return clip


def _scripting_with_originals(original: Callable[..., Any]) -> Callable[..., Any]:
    deeper = "_frames_up" in inspect.signature(original).parameters

    @functools.wraps(original)
    def script(*args: Any, **kwargs: Any) -> Any:
        if deeper:  # names are looked up in the caller's frame, which is two frames of ours above
            if len(args) > 2:
                args = (*args[:2], args[2] + 2, *args[3:])
            else:
                kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 2
        if state.is_scripting:  # it calls itself for what a module holds
            return original(*args, **kwargs)
        state.is_scripting = True
        ours = [each for each in _entered.items() if each[0].__code__ is each[1].entered]
        for function, listened in ours:
            function.__code__ = listened.code
        try:
            return original(*args, **kwargs)
        finally:
            for function, listened in ours:
                if function in _entered:
                    function.__code__ = listened.entered
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


def _listening_export(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def export(*args: Any, **kwargs: Any) -> Any:
        listener = state.listener
        if listener is None:
            return original(*args, **kwargs)
        listener.export_begins()
        try:
            return original(*args, **kwargs)
        finally:
            listener.export_ends()

    return export


def _replace(
    owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> None:
    """Puts `make(original)` in the place of an attribute."""
    original = getattr(owner, name, None)
    if original is None:
        return
    ours = make(original)
    setattr(owner, name, ours)

    def undo() -> None:
        # Somebody may have wrapped it again since; then ours stays inside theirs, and is silent.
        if getattr(owner, name, None) is ours:
            setattr(owner, name, original)

    _undo.append(undo)


# So many parameters are passed on by position, the others by name: who listens asks for those.
_BY_POSITION = 3


def _code_that_calls(name: str, like: types.CodeType) -> types.CodeType:
    """Code of a function that passes its arguments on to `name`, an expression of globals.

    It has the parameters of `like`, so that defaults and signature hold; its free variables,
    because a function can only be given code that has as many as the function has cells; and its
    place in the source, which is what is looked up there.
    """
    has_args = bool(like.co_flags & inspect.CO_VARARGS)
    has_kwargs = bool(like.co_flags & inspect.CO_VARKEYWORDS)
    names = list(like.co_varnames)
    usual, names = names[: like.co_argcount], names[like.co_argcount :]
    by_name, names = names[: like.co_kwonlyargcount], names[like.co_kwonlyargcount :]
    star = f"*{names.pop(0)}" if has_args else ""
    stars = f"**{names.pop(0)}" if has_kwargs else ""
    only_by_position = like.co_posonlyargcount
    parameters = [
        *usual[:only_by_position],
        *(["/"] if only_by_position else []),
        *usual[only_by_position:],
        *([star or "*"] if has_args or by_name else []),
        *by_name,
        *([stars] if has_kwargs else []),
    ]
    positions = len(usual) if has_args else max(only_by_position, _BY_POSITION)
    arguments = [
        *usual[:positions],
        *(f"{each}={each}" for each in usual[positions:]),
        *([star] if has_args else []),
        *(f"{each}={each}" for each in by_name),
        *([stars] if has_kwargs else []),
    ]
    free = like.co_freevars
    lines = [
        "def outer():",
        *(f"    {variable} = None" for variable in free),
        f"    def call({', '.join(parameters)}):",
        *(f"        if 0: {variable}" for variable in free),
        f"        return {name}({', '.join(arguments)})",
        "    return call",
    ]
    namespace: dict[str, Any] = {}
    exec("\n".join(lines), namespace)
    code: types.CodeType = namespace["outer"]().__code__
    if code.co_freevars != free:
        raise ValueError(f"{like.co_name}: free variables in another order")
    return code.replace(
        co_name=like.co_name, co_filename=like.co_filename, co_firstlineno=like.co_firstlineno
    )


class _Listened(NamedTuple):
    """A function that was listened to: its own code, the one that calls ours, a copy of it."""

    code: types.CodeType
    entered: types.CodeType
    original: types.FunctionType


# Made once for each function and kept, with what the code calls: another thread may be between two
# instructions of it when the last `release` comes, and compiled code is compiled anew for each code
# that it finds in a function.
_listened: weakref.WeakKeyDictionary[types.FunctionType, _Listened] = weakref.WeakKeyDictionary()


_Make = Callable[[Callable[..., Any]], Callable[..., Any]]
# Of the function and of what listens to it: the same in native code.
_MakeNative = Callable[[Callable[..., Any], Callable[..., Any]], Callable[..., Any]]


def _make_listened(
    function: types.FunctionType, make: _Make, natively: _MakeNative | None
) -> _Listened:
    code = function.__code__
    original = types.FunctionType(
        code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    original.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(original, function, updated=())
    vars(original).pop("__wrapped__")
    vars(original).update(vars(function))
    # By name, as code finds what it calls: a compiler that reads the code finds it, too.
    key = f"_traindbg_{function.__name__}_{id(function):x}"
    ours = make(original)
    called, added = key, {key: ours}
    if natively is not None:  # which no compiler can read
        compiles, native = f"{key}_compiles", f"{key}_native"
        called = f"({key} if {compiles}() else {native})"
        added |= {compiles: _is_read, native: natively(original, ours)}
    entered = _code_that_calls(called, code)
    function.__globals__.update(added)
    for each in added:
        weakref.finalize(function, function.__globals__.pop, each, None).atexit = False
    return _Listened(code, entered, original)


def _listen_inside(owner: Any, name: str, make: _Make, natively: _MakeNative | None = None) -> None:
    """Has a function call `make(original)`, where `original` is a copy of what it was.

    With `natively`, what that makes is called in its place, but not by compilers.
    """
    function = getattr(owner, name, None)
    if function is None or function in _entered:
        return
    if not isinstance(function, types.FunctionType):
        _replace(owner, name, make)
        return
    listened = _listened.get(function)
    if listened is None or listened.code is not function.__code__:
        try:
            listened = _listened[function] = _make_listened(function, make, natively)
        except (SyntaxError, TypeError, ValueError):  # code that no source has, of some other tool
            _replace(owner, name, make)
            return
    function.__code__ = listened.entered
    _entered[function] = listened

    def undo() -> None:
        if function.__code__ is listened.entered:
            function.__code__ = listened.code
        _entered.pop(function, None)

    _undo.append(undo)


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


def also_listen_to(owner: Any, function: str, name: str, as_mean: Callable[..., Any]) -> None:
    """Hears one more loss, the method `owner.function`, as `name`: until the last `release`.

    What is recorded of a value is `as_mean(name, value, args, kwargs)`.
    """
    if _users > 0:
        _listen_inside(owner, function, lambda original: _listening_loss(name, original, as_mean))


_grad_users = 0
_grad_undo: list[Callable[[], None]] = []


def listen_to_numbers(on: bool) -> None:
    """Hears of the numbers that are read of tensors, or no more; at the last `release`, too."""
    global _number_undo
    if not on or _users == 0:
        undo, _number_undo = _number_undo, []
        for each in undo:
            _undo.remove(each)
            each()
    elif not _number_undo:
        for name in _NUMBERS:
            own = vars(torch.Tensor).get(name)
            ours = listening_number(getattr(torch.Tensor, name))
            setattr(torch.Tensor, name, ours)
            _number_undo.append(functools.partial(_restore, name, ours, own))
        _undo.extend(_number_undo)


def _restore(name: str, ours: Any, own: Any) -> None:
    if vars(torch.Tensor).get(name) is not ours:
        return  # somebody has wrapped it since
    if own is None:
        delattr(torch.Tensor, name)
    else:
        setattr(torch.Tensor, name, own)


def listen_to_grad() -> Callable[[], None]:
    """Hears `torch.autograd.grad`, until what it returns is called, or the last `release`.

    Other than what `acquire` puts in, it is needed only while no optimizer steps.
    """
    global _grad_users
    if _users == 0:
        return lambda: None
    if _grad_users == 0:
        before = len(_undo)
        _listen_inside(torch.autograd, "grad", _listening_grad)
        _grad_undo[:] = _undo[before:]
    _grad_users += 1
    return _stop_listening_to_grad


def _stop_listening_to_grad() -> None:
    global _grad_users
    _grad_users -= 1
    if _grad_users == 0:
        for undo in _grad_undo:
            _undo.remove(undo)
            undo()
        _grad_undo.clear()


_loss_modules: dict[int, weakref.ref[torch.nn.Module]] = {}  # by their ids


def listen_to_module(loss: torch.nn.Module) -> bool:
    """Hears what a module of the user's returns as a loss: until `forget_module`.

    False: its `forward` is no function of its class (it is scripted, compiled, or its own).
    """
    forward = getattr(type(loss), "forward", None)
    if not isinstance(forward, types.FunctionType) or "forward" in vars(loss):
        return False
    _loss_modules[id(loss)] = weakref.ref(loss)
    if _users > 0:
        _listen_inside(type(loss), "forward", _ListeningModule)
    return True


def forget_module(loss: torch.nn.Module) -> None:
    """The opposite of `listen_to_module`."""
    _loss_modules.pop(id(loss), None)


class _ListeningModule:
    """The `forward` of loss modules. Where a class is pickled by value, it is the original."""

    def __init__(self, original: Callable[..., Any]) -> None:
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value = self._original(*args, **kwargs)
        if not _is_compiling():
            listener = state.listener
            known = _loss_modules.get(id(args[0])) if args else None
            if listener is not None and known is not None and known() is args[0]:
                listener.loss_computed(type(args[0]).__name__, value, args[1:], kwargs)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self._original,)


def _before_step(
    optimizer: torch.optim.Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    if _is_read() or state.optimizer_will_step(optimizer):
        return None
    listener = None if _is_compiling() else state.listener
    if listener is None:
        return None
    corrections = state.corrections
    if corrections is None:
        return _heard_before_step(listener, optimizer, args, kwargs)
    corrections.scale(optimizer)
    heard = _heard_before_step(listener, optimizer, args, kwargs)
    return corrections.judge(optimizer, heard or (args, kwargs))


def _heard_before_step(
    listener: Listener,
    optimizer: torch.optim.Optimizer,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
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
    if _is_read():
        return
    answer = state.optimizer_stepped(optimizer)
    listener = None if answer == NOTHING_TO_DO or _is_compiling() else state.listener
    if listener is None:
        return
    corrections, hot = state.corrections, state.hot
    if corrections is not None:
        corrections.stepped()
        if hot is not None:
            answer = hot.optimizer_stepped(optimizer)
    if answer == NOT_HANDLED:
        listener.optimizer_stepped(optimizer)
    elif answer != NOTHING_TO_DO:
        listener.step_ended(answer)
    if corrections is not None:
        corrections.step_ended()


def _registered(module: torch.nn.Module, name: str, value: Any) -> None:
    if _is_compiling():
        return
    guarded("sources", sources.registered, value)
    guarded("drawn parameters", drawn.registered, value)
    listener = state.listener
    if listener is not None and state.hot is not None:
        guarded("wrappers", wrappers.made, module)
        listener.modules_changed()


_GradScaler: type = getattr(torch.amp, "GradScaler", None) or torch.cuda.amp.GradScaler
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
            for base in type(self).__mro__:
                if issubclass(base, _GradScaler):
                    guarded("gradients before", _listen_to_scalers, base)

    return init


def _loads_for_training() -> bool:
    """Whether a loader that is asked for batches now may be that of a training."""
    listener = state.listener
    return torch.is_grad_enabled() and (listener is None or not listener.is_evaluating)


def _steps_made() -> int | None:
    """By the training that is listened to; None where there is none."""
    return None if state.listener is None or state.hot is None else state.hot.steps


def _kept_weights() -> KeptWeights | None:
    """Of the training that is listened to; who searches for one by hand has none."""
    kept = None if _is_compiling() else getattr(state.listener, "weights", None)
    return kept if isinstance(kept, KeptWeights) else None


def _listening_load_of_file(original: Callable[..., Any]) -> Callable[..., Any]:
    return listening_read(_kept_weights, listening_load(original))


def _listening_load_of_model(original: Callable[..., Any]) -> Callable[..., Any]:
    return listening_loaded(_kept_weights, listening_model(original))


def _reductions_listener() -> Callable[[Any], None] | None:
    """Who wants to know at this step what is averaged over processes."""
    hot, listener = state.hot, state.listener
    is_due = hot is not None and hot.due & ROLE_BITS["loop"]
    return listener.reduced if listener is not None and is_due else None


def _wants_loop() -> bool:
    """Whether facts of the loop are taken at this step."""
    hot = state.hot
    if hot is None or not hot.due & ROLE_BITS["loop"] or state.listener is None:
        return False
    return not (is_transforming() or _is_tracing())


def acquire() -> None:
    """Puts the wrappers in, unless they are. Every call needs a `release`."""
    global _users
    _users += 1
    if _users > 1:
        return
    for name in LOSSES:
        natively = functools.partial(_native_loss, name)
        _listen_inside(functional, name, functools.partial(_listening_loss, name), natively)
    _listen_inside(torch.autograd, "backward", _listening_backward, state.heard_backward)
    _listen_inside(torch.jit, "script", _scripting_with_originals)
    _listen_inside(torch, "compile", _listening_compile)
    _listen_inside(torch.export, "export", _listening_export)
    _replace(torch.nn.modules.module, "_has_any_global_hook", lambda _: others_have_global_hooks)
    loader = torch.utils.data.DataLoader
    _replace(loader, "__init__", listening_init)
    _replace(loader, "__iter__", functools.partial(listening_iter, _loads_for_training))
    _replace(torch.utils.data.dataloader._BaseDataLoaderIter, "__next__", listening_next)
    _replace(torch.nn.Module, "eval", functools.partial(listening_eval, _steps_made))
    _replace(torch.nn.Module, "train", listening_train)
    for switch, names in _SWITCHES.items():
        for name in names:
            _replace(switch, name, listening_switch)
    _listen_inside(torch.serialization, "load", _listening_load_of_file)
    _listen_inside(torch.serialization, "save", functools.partial(listening_save, _kept_weights))
    _listen_inside(torch.nn.Module, "load_state_dict", _listening_load_of_model)
    # Called for each module: what `_listen_inside` does would cost three times as much.
    _replace(torch.nn.Module, "state_dict", functools.partial(listening_taken, _kept_weights))
    _listen_inside(torch.optim.Optimizer, "state_dict", listening_state)
    _listen_inside(torch.optim.Optimizer, "load_state_dict", listening_optimizer)
    for owner, name, make in LISTENED:
        _replace(owner, name, make)
    for kind in densities.kinds():
        _listen_inside(kind, "log_prob", functools.partial(densities.listening, _wants_loop))
    _replace(_GradScaler, "__init__", _finding_its_class)
    guarded("gradients before", _listen_to_scalers, _GradScaler)
    clip_grad = torch.nn.utils.clip_grad
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        _listen_inside(clip_grad, name, functools.partial(_listening_clip, None))
    # What `clip_grad_norm_` calls, and trainings that add up the norms of several parts.
    inner = "_clip_grads_with_norm_"
    _listen_inside(clip_grad, inner, functools.partial(_listening_clip, 2))
    if torch.distributed.is_available():
        collectives = torch.distributed.distributed_c10d
        reduce = functools.partial(listening_reduce, _reductions_listener)
        _listen_inside(collectives, "all_reduce", reduce)
    before = register_optimizer_step_pre_hook(_before_step)
    after = register_optimizer_step_post_hook(_after_step)
    _undo.extend((before.remove, after.remove))
    _undo.append(register_module_module_registration_hook(_registered).remove)
    _undo.append(register_module_parameter_registration_hook(_registered).remove)


def release() -> None:
    """Takes the wrappers out when nobody needs them any more."""
    global _users
    _users -= 1
    if _users > 0:
        return
    _users = 0
    while _undo:
        _undo.pop()()
    _grad_undo.clear()
    _number_undo.clear()
    _scalers.clear()
    _loss_modules.clear()
    checkpoints.clear()
    modes.clear()
    schedules.clear()
    states.clear()
    wrappers.clear()
