"""Looks at one forward pass of one model, and leaves nothing behind.

While a pass is wanted, and only then, two hooks are called for every module of the process:
PyTorch's global ones, because hooks on the modules themselves would be pickled and copied with
them, and make some modules compute in another way. A function mode sees activation functions that
are called as functions; it is on between the call of the root module and its return. The hooks are
native code (`_core.ForwardPath`), which leaves to the code here what is not ordinary. While one
pass alone is looked at, and no compiler is in use, modules without hooks of their own are called
without PyTorch's detour for hooks (`ForwardPath.shorten`).
"""

from __future__ import annotations

import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.overrides import TorchFunctionMode

from traindbg import _core
from traindbg.hooks.torch.base.compiled import HiddenFromCompiler, our_hooks
from traindbg.hooks.torch.base.names import (
    ACTIVATION_FUNCTIONS,
    activation_kind,
    class_name,
    is_leaf,
    kind_of_call,
    name_of_root,
    tensors_in,
)
from traindbg.hooks.torch.data.mixers import MIXERS
from traindbg.hooks.torch.evaluations.stand_in import StandIn
from traindbg.hooks.torch.evaluations.standby import standby
from traindbg.hooks.torch.recording.attention import (
    ATTENTION_FUNCTIONS,
    NotMadeError,
    attention_map,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from torch.utils.hooks import RemovableHandle


NOTHING, INPUTS, EVERYTHING, RETURN = range(4)
_CALL = torch.nn.Module._call_impl.__code__
# Keywords by which models that compute their loss are given its target, as those of transformers.
_LABELS = frozenset({".labels", ".label", ".target_values", ".future_values"})
# Looked up once, because they are asked at every call. Dynamo knows the function by any name.
_is_compiling = torch.compiler.is_compiling


class Place:
    """A module of a watched model: where it is, what it is."""

    __slots__ = (
        "function_ids",
        "ids",
        "is_leaf",
        "is_quiet",
        "is_seen",
        "is_taken",
        "kind",
        "layer",
        "module_type",
        "name",
        "output_ids",
        "returns_as",
        "taken_as",
    )

    def __init__(self, name: str, module: torch.nn.Module, layer: int) -> None:
        self.name = name
        self.module_type = class_name(module)
        self.layer = layer
        self.kind = activation_kind(module)
        self.is_leaf = is_leaf(module)
        # Functions that it calls are PyTorch's own business: what it returns is looked at.
        self.is_quiet = self.is_leaf and type(module).__module__.startswith("torch.nn.modules.")
        self.is_taken = self.is_leaf  # its output is; of blocks, where it is asked for by name
        self.returns_as = name  # of a block: what its output is called
        self.is_seen = False  # in a pass that was looked at
        self.ids: dict[str, int] = {}  # the sink's, of what it knows of this place
        self.output_ids: dict[str, int] = {}  # of its outputs, by their suffixes
        self.function_ids: dict[tuple[str, int], int] = {}  # of functions' outputs, by the call
        # The one of its output, where that is one plain tensor; those of a tuple of such and Nones.
        self.taken_as: int | tuple[int | None, ...] | None = None


def _names_above(name: str) -> Iterator[str]:
    """`a` and `a.b` of `a.b.c`."""
    position = name.find(".")
    while position >= 0:
        yield name[:position]
        position = name.find(".", position + 1)


def _is_nested(module: torch.nn.Module) -> bool:
    """In a hook of `module`: whether it was called by its own forward."""
    calls = 0
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and calls < 2:
        if frame.f_code is _CALL and frame.f_locals.get("self") is module:
            calls += 1
        frame = frame.f_back
    return calls > 1


def _keywords_of(module: torch.nn.Module) -> dict[str, Any] | None:
    """In a hook before the forward of `module`: its keyword arguments, which hooks are not given.

    A loss that the forward computes itself, of labels that it is given, comes before what a hook is
    told after it.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            given = frame.f_locals
            return given.get("kwargs") if given.get("self") is module else None
        frame = frame.f_back
    return None


class Sink(Protocol):
    """Where the tensors of a forward pass go. Raises nothing.

    `wants_forward` answers what of the pass is wanted: 0, INPUTS, EVERYTHING, or RETURN alone, that
    it has returned, which belongs to the others, too; `plain_mode`, in which mode outputs of places
    with an id go straight to the session (0: in none); `takes_calls`, whether what a module returns
    is wanted that is called again in it;
    `takes_functions`, whether functions may be listened to in it: what is compiled would be
    compiled again for that; `wants_functions`, whether something of them is due;
    `wants_attention`, whether attention maps are to be made in it; `wants_mixers`, whether it is
    told of functions that carry something along a sequence; `wants_hazards`, of those that may make
    what is not finite, or drop values in an evaluation.

    `has_enough`: that nothing is wanted of a pass without gradients, nor of those that follow.

    `plans` counts the plans that held; `wants_block` says whether the one that holds asks for the
    output of a module with others inside, `may_want_blocks`, whether it may ask for any.

    Where the root is not called, `part_begins` announces a part that is called by the training
    itself, and answers whether a pass begins with it; whether its inputs are wanted, as those of
    the model, is asked with `stand_in_begins`.
    """

    plans: int
    may_want_blocks: bool
    has_enough: bool

    def wants_block(self, name: str) -> bool: ...
    def wants_forward(self, root: torch.nn.Module) -> int: ...
    def plain_mode(self) -> int: ...
    def takes_calls(self) -> bool: ...
    def part_begins(self) -> bool | None: ...
    def stand_in_begins(self, root: torch.nn.Module) -> bool: ...
    def takes_functions(self) -> bool: ...
    def wants_functions(self) -> bool: ...
    def model_input(
        self, place: Place, number: int, tensor: torch.Tensor, are_labels: bool
    ) -> None: ...
    def model_called(
        self, root: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None: ...
    def model_returned(self, given: tuple[Any, dict[str, Any]], output: Any) -> None: ...
    def module_output(
        self, place: Place, suffix: str, tensor: torch.Tensor, number: int
    ) -> None: ...
    def function_output(
        self, place: Place, function: str, kind: str, number: int, tensor: torch.Tensor
    ) -> None: ...
    def wants_attention(self) -> bool: ...
    def attention(self, place: Place, number: int, tensor: torch.Tensor) -> None: ...
    def attention_not_made(self, place: Place, reason: str) -> None: ...
    def wants_mixers(self) -> bool: ...
    def mixer_called(
        self, place: Place, function: Any, args: Any, kwargs: Any, result: Any
    ) -> None: ...
    def wants_hazards(self) -> bool: ...
    def risky_functions(self) -> frozenset[Any]: ...
    def hazard_called(
        self, place: Place, function: Any, args: Any, kwargs: Any, result: Any
    ) -> None: ...
    def forward_raised(self) -> None: ...
    def failed(self, feature: str, error: Exception) -> None: ...


class _FunctionMode(TorchFunctionMode):  # type: ignore[misc]
    """Tells of activation functions: their word, their kind, what they returned.

    `attended` hears of calls that attend: the function, its arguments, what it returned; `mixed`
    the same of those that carry something along a sequence, `risked` of `risky` ones.
    """

    def __init__(
        self,
        called: Callable[[str, str, Any], None],
        attended: Callable[[Any, Any, Any, Any], None] | None,
        mixed: Callable[[Any, Any, Any, Any], None] | None,
        risked: Callable[[Any, Any, Any, Any], None] | None,
        risky: frozenset[Any],
    ) -> None:
        super().__init__()
        self._called: Callable[[str, str, Any], None] | None = called
        self._attended = attended
        self._mixed = mixed
        self._risked = risked
        self._risky = risky

    @property
    def hears_only_activations(self) -> bool:
        """Whether nobody else hears of anything."""
        return self._attended is None and self._mixed is None and self._risked is None

    def leave(self) -> None:
        """Ends it; out of order (after Ctrl-C inside a forward pass) it only falls silent."""
        self._called = self._attended = self._mixed = self._risked = None
        if torch.overrides._get_current_function_mode() is self:
            self.__exit__(None, None, None)

    # In native code this takes as long: the time goes into PyTorch's way to it.
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **kwargs) if kwargs else func(*args)
        called, attended, mixed = self._called, self._attended, self._mixed
        risked = self._risked
        if called is None or _is_compiling():
            return result
        if risked is not None and func in self._risky:
            risked(func, args, kwargs or {}, result)
        known = ACTIVATION_FUNCTIONS.get(func)
        if known is not None:
            kind = kind_of_call(func, known[1], args, kwargs or {}, result)
            if kind is not None:
                called(known[0], kind, result)  # a softmax is heard of by others, too
        if attended is not None and func in ATTENTION_FUNCTIONS:
            attended(func, args, kwargs or {}, result)
        if mixed is not None and func in MIXERS:
            mixed(func, args, kwargs or {}, result)
        return result


def _hooks_of(path: _core.ForwardPath) -> tuple[Any, Any]:
    """The native hooks, as functions that a compiler can read: it is told that they do nothing."""
    native_before, native_after = path.before, path.after

    def before(module: torch.nn.Module, args: Any) -> Any:
        return None if _is_compiling() else native_before(module, args)

    def after(module: torch.nn.Module, *rest: Any) -> Any:
        return None if _is_compiling() else native_after(module, *rest)

    return before, after


class ForwardObserver:
    """The forward passes of one root module, as far as a sink wants them."""

    def __init__(
        self, root: torch.nn.Module, name: str, prefix: str, sink: Sink, path: _core.ForwardPath
    ) -> None:
        self._sink = sink
        self._root = weakref.ref(root)
        self._path = path  # the state of the pass
        path.attach(self._root, self._before, self._after, self._leaf_called)
        self._root_place = Place(name, root, 0)
        self._root_place.returns_as = name_of_root(root, prefix)
        self._prefix = prefix
        self._asked_of = -1  # of which plan it was asked which blocks are taken
        self._first_layer = 0  # the number of the root
        self._handles: list[RemovableHandle] = []
        self._beside_compiler = False
        self._uncompiled: tuple[Any, Any] | None = None
        self._hidden: HiddenFromCompiler | None = None
        self._only_for_evaluations = False
        self._mode: _FunctionMode | None = None
        self._places: dict[int, Place] = {}  # of its modules inside, by id
        self._repeats: dict[tuple[str, str], int] = {}
        self._inputs = 0
        self._takes_inputs = True  # in the pass under way
        self._has_keywords = False  # it has taken those among them
        self._parts_are_next = False  # once the evaluation that is observed is over
        self._stand_in = StandIn()
        self.calls = 0  # of the root, seen in Python
        self.calls_in_training = 0  # those of them with gradients
        self.calls_without_gradients = 0  # those of them without, in training mode all the same
        self.took_functions = True  # in the last pass
        self.counts_unseen = False  # the next whole pass fills these two:
        self.unseen: list[str] | None = None  # names of modules whose call was not seen
        self.seen = 0  # how many were

    def comes_after(self, layers: int) -> None:
        """So many layers of other models come before the root; before it is looked at."""
        self._first_layer = self._root_place.layer = layers

    def note_blocks(self) -> None:
        """Asks for modules with others inside before a pass is looked at: none may be, else."""
        root = self._root()
        if root is None or not self._sink.may_want_blocks:
            return
        self._sink.wants_block(self._root_place.returns_as)
        for path, module in root.named_modules():
            if path and not is_leaf(module):
                self._sink.wants_block(self._prefix + path)

    @property
    def armed(self) -> bool:
        """Whether anything is attached."""
        return bool(self._handles)

    @property
    def observing(self) -> bool:
        """Whether a pass is looked at, and more of it than the inputs."""
        return self._path.observing

    @property
    def hears_parts_alone(self) -> bool:
        """Whether parts of the root were seen in training, and never the root."""
        return self._stand_in.has_looked and self.calls_in_training == 0

    @property
    def hears_functions(self) -> bool:
        """Whether a pass is looked at in which functions are heard of."""
        return self._mode is not None

    @property
    def outputs(self) -> int:
        """Of modules inside: how many were seen in Python."""
        return self._path.outputs

    def arm(self, beside_compiler: bool) -> None:
        """From now on a call of the root is observed when the sink wants it.

        `beside_compiler`: torch.compile is in use in this process.
        """
        with standby.lock:  # another thread may switch gradients off
            self._arm(beside_compiler)

    def _arm(self, beside_compiler: bool) -> None:
        standby.leave(self)
        self._only_for_evaluations = False
        if self._handles and self._beside_compiler != beside_compiler and not self.observing:
            self._disarm()
        if not self._handles:
            self._beside_compiler = beside_compiler
            before, after = _hooks_of(self._path)
            if beside_compiler:  # where compiled code calls them, they would be compiled themselves
                if self._uncompiled is None:
                    disable = torch.compiler.disable
                    self._uncompiled = disable(self._before), disable(self._after)
                before, after = self._uncompiled
            self._handles = [
                register_module_forward_pre_hook(before),
                register_module_forward_hook(after, with_kwargs=True, always_call=True),
            ]
            our_hooks.update(handle.id for handle in self._handles)
            self._path.armed = True
        if self._hidden is None or not self._hidden.is_active:
            tables = torch.nn.modules.module
            self._hidden = HiddenFromCompiler(
                [
                    (tables._global_forward_pre_hooks, self._handles[0].id),
                    (tables._global_forward_hooks, self._handles[1].id),
                ],
                _core.ForwardPath.restore,
            )

    def stand_by(self) -> None:
        """Takes everything off until an evaluation may begin. Not where compilers are at work."""
        with standby.lock:
            self._disarm()
            self._only_for_evaluations = True
            standby.wait(self)

    def evaluation_may_begin(self) -> None:
        """Attaches, until a pass of the training. The lock is held."""
        if self._only_for_evaluations:
            self._arm(beside_compiler=False)
            self._only_for_evaluations = True

    def training_goes_on(self) -> None:
        """No evaluation is under way. The lock is held."""
        if self._only_for_evaluations and not self.observing:
            self.stand_by()

    def disarm(self) -> None:
        """Takes everything off."""
        with standby.lock:
            self._disarm()

    def _disarm(self) -> None:
        standby.leave(self)
        self._only_for_evaluations = False
        self._leave()
        if self._hidden is not None:
            self._hidden.stop()
            self._hidden = None
        for handle in self._handles:
            handle.remove()
            our_hooks.discard(handle.id)
            # PyTorch forgets to clear this one.
            torch.nn.modules.module._global_forward_hooks_with_kwargs.pop(handle.id, None)
        self._handles = []
        self._path.armed = False

    def observe_without_root(self) -> None:
        """For training loops that call the parts of a model but never the model: until disarmed."""
        root = self._root()
        if root is not None and not self.observing:
            self._enter(root)
            self._path.without_root = True

    def parts_were_called(self) -> None:
        """A step is over in which parts were looked at, and not the root."""
        self._stand_in.step_ended()

    # PyTorch calls these, or those of the native path, for every module of the process.

    def _before(self, module: torch.nn.Module, args: Any) -> None:
        path = self._path
        if _is_compiling() or path.is_of_another_thread():
            return
        if path.observing:
            place = path.known.get(id(module))
            if place is not None:
                is_outermost = path.without_root and len(path.running) == 1
                if is_outermost and self._is_of_the_pass():
                    self._part_begins(place, args)
                path.running.append(place)
                return
        if module is self._root() and not (path.observing and _is_nested(module)):
            self._root_begins(module, args)

    def _after(self, module: torch.nn.Module, args: Any, *rest: Any) -> None:
        path = self._path
        if _is_compiling() or not (path.observing or path.inputs_only):
            return
        if path.is_of_another_thread():
            return
        try:
            # After an exception PyTorch leaves out the keyword arguments, and there is no output.
            output = rest[-1]
            raised = len(rest) == 1
            place = path.known.get(id(module))
            if place is not None:
                running = path.running
                while running and running.pop() is not place:
                    pass  # modules inside that raised
                if place.is_taken and not raised and self._is_of_the_pass():
                    self._module_called(place, output, path.count_call(place))
                if path.without_root and len(running) == 1 and not raised:
                    self._part_returned(place, module, args, rest[0])
            elif module is self._root() and not path.without_root and not _is_nested(module):
                if raised:
                    self._pass_ends()
                    self._sink.forward_raised()
                    return
                if not self._has_keywords:
                    self._take_inputs(rest[0])
                self._sink.model_called(module, args, rest[0])
                if self._root_place.is_taken and self.observing:
                    self._module_called(self._root_place, output, 1)
                if self.observing and self.counts_unseen:
                    self._count_unseen()
                self._pass_ends()
                self._sink.model_returned((args, rest[0]), output)
        except Exception as error:
            self._sink.failed("forward", error)

    def _leaf_called(self, place: Place, output: Any, number: int) -> None:
        try:
            self._module_called(place, output, number)
        except Exception as error:
            self._sink.failed("forward", error)

    # One pass.

    def _root_begins(self, root: torch.nn.Module, args: Any) -> None:
        try:
            is_training = root.training and torch.is_grad_enabled()
            goes_on = (self._path.without_root or self._parts_are_next) and not is_training
            self._leave()  # also a pass that Ctrl-C ended
            self.calls += 1
            self.calls_in_training += is_training
            self.calls_without_gradients += bool(root.training) and not is_training
            self._parts_are_next = goes_on
            wanted = self._sink.wants_forward(root)
            if wanted == NOTHING:
                self._pass_ends()
                if self._only_for_evaluations and (is_training or self._sink.has_enough):
                    standby.training_goes_on()
                return
            self._inputs = 0
            self._path.thread = threading.get_ident()
            self._path.inputs_only = wanted in (INPUTS, RETURN)
            self._takes_inputs = wanted != RETURN
            self._take_inputs(args)
            keywords = _keywords_of(root) if self._takes_inputs else None
            self._has_keywords = keywords is not None
            self._take_inputs(keywords)
            if self._path.inputs_only:
                return
            self._enter(root)
            self._path.mode = self._sink.plain_mode()
            self._path.takes_calls = self._sink.takes_calls()
            self.took_functions = self._sink.takes_functions()
            if self.took_functions and self._sink.wants_functions():
                attended = self._attended if self._sink.wants_attention() else None
                mixed = self._mixed if self._sink.wants_mixers() else None
                risked = self._risked if self._sink.wants_hazards() else None
                risky = self._sink.risky_functions()
                self._mode = _FunctionMode(self._function_called, attended, mixed, risked, risky)
                self._mode.__enter__()
            if not self._beside_compiler:
                self._path.shorten(self._mode if self._hears_only_activations() else None)
        except Exception as error:
            self._sink.failed("forward", error)

    def _part_begins(self, place: Place, args: Any) -> None:
        """The root is not called: a part is, by the training itself."""
        try:
            if self._sink.part_begins():
                self._path.forget_calls()
            root = self._root()
            self._inputs, self._takes_inputs = 0, False
            if root is not None and place.name == self._stand_in.name:
                self._takes_inputs = self._sink.stand_in_begins(root)
                self._take_inputs(args, place)
        except Exception as error:
            self._sink.failed("forward", error)

    def _part_returned(
        self, place: Place, module: torch.nn.Module, args: Any, kwargs: dict[str, Any]
    ) -> None:
        if not self._is_of_the_pass():
            return
        if not self._stand_in.is_known:
            self._stand_in.called(place.name, module, (args, kwargs))
        elif place.name == self._stand_in.name:
            self._take_inputs(kwargs, place)
        self._takes_inputs = False

    def _hears_only_activations(self) -> bool:
        mode = self._mode
        return mode is not None and mode.hears_only_activations

    def _pass_ends(self) -> None:
        goes_on = self._parts_are_next
        self._leave()
        if goes_on:
            self.observe_without_root()

    def _is_of_the_pass(self) -> bool:
        """Without a call of the root others may come in between: of an evaluation, of a tracer."""
        if not self._path.without_root:
            return True
        root = self._root()
        is_trained = root is not None and root.training and torch.is_grad_enabled()
        return is_trained and not torch.jit.is_tracing()

    def _enter(self, root: torch.nn.Module) -> None:
        is_same = self._path.has_same_structure(root)
        if not is_same:
            self._places = {}  # should the next line fail
            self._places = {
                id(module): Place(self._prefix + path, module, layer)
                for layer, (path, module) in enumerate(root.named_modules(), self._first_layer)
                if path
            }
        if not is_same or self._asked_of != self._sink.plans:
            self._ask_for_blocks()
        self._path.known = self._places
        if self.counts_unseen:
            for place in self._places.values():
                place.is_seen = False
        self._path.running = [self._root_place]
        self._repeats = {}
        self._path.forget_calls()
        self._path.thread = threading.get_ident()
        self._path.observing = True

    def _ask_for_blocks(self) -> None:
        self._asked_of = self._sink.plans
        for place in (self._root_place, *self._places.values()):
            if not place.is_leaf:
                place.is_taken = self._sink.wants_block(place.returns_as)

    def _take_inputs(self, given: Any, place: Place | None = None) -> None:
        """Of the root, or of the part that stands in for it."""
        found = tensors_in(given, 3) if self._takes_inputs else ()
        for name, tensor in sorted(found, key=lambda each: each[0] in _LABELS):
            are_labels = name in _LABELS and self._inputs > 0
            self._sink.model_input(place or self._root_place, self._inputs, tensor, are_labels)
            self._inputs += 1

    def _count_unseen(self) -> None:
        self.counts_unseen = False
        taken = {place.name: place for place in self._places.values() if place.is_taken}
        leaves = {name for name, place in taken.items() if place.is_leaf}
        # Of a module that is looked at as a whole, those inside are not.
        inner = {name for name in leaves if any(above in leaves for above in _names_above(name))}
        self.unseen = [
            name for name, place in taken.items() if not place.is_seen and name not in inner
        ]
        self.seen = len(taken) - len(inner) - len(self.unseen)

    def _module_called(self, place: Place, output: Any, number: int) -> None:
        """`number`: of the call in the pass, from 1 on."""
        self._path.outputs += 1
        place.is_seen = True
        for suffix, tensor in tensors_in(output):
            self._sink.module_output(place, suffix, tensor, number)
        if (
            number == 1
            and type(output) is tuple
            and all(part is None or type(part) is torch.Tensor for part in output)
        ):
            ids = (place.output_ids.get(f".{number}") for number in range(len(output)))
            place.taken_as = tuple(ids)

    def _innermost(self) -> Place:
        """The place whose forward runs."""
        running: list[Place] = self._path.running
        return running[-1] if running else self._root_place

    def _function_called(self, function: str, kind: str, result: Any) -> None:
        try:
            place = self._innermost()
            if place.kind != "none" or not isinstance(result, torch.Tensor):
                return  # inside an activation module, whose output is looked at
            number = self._repeats.get((place.name, function), 0) + 1
            self._repeats[(place.name, function)] = number
            known = place.function_ids.get((function, number))
            if known is not None and self._path.function_returned(known, result):
                return
            self._sink.function_output(place, function, kind, number, result)
        except Exception as error:
            self._sink.failed("activations", error)

    def _attended(self, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        try:
            place = self._innermost()
            number = self._repeats.get((place.name, "attention"), 0) + 1
            self._repeats[(place.name, "attention")] = number
            try:
                weights = attention_map(function, args, kwargs, result)
            except NotMadeError as why:
                self._sink.attention_not_made(place, str(why))
            except Exception as error:  # of this call alone: others may well have their maps
                reason = f"it could not be computed: {type(error).__name__}: {error}"
                self._sink.attention_not_made(place, reason[:500])
            else:
                self._sink.attention(place, number, weights)
        except Exception as error:
            self._sink.failed("attention", error)

    def _mixed(self, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        try:
            self._sink.mixer_called(self._innermost(), function, args, kwargs, result)
        except Exception as error:
            self._sink.failed("sequences", error)

    def _risked(self, function: Any, args: Any, kwargs: Any, result: Any) -> None:
        try:
            self._sink.hazard_called(self._innermost(), function, args, kwargs, result)
        except Exception as error:
            self._sink.failed("hazards", error)

    def _leave(self) -> None:
        path = self._path
        path.observing = path.inputs_only = path.without_root = False
        path.mode = 0
        path.known = {}
        path.running = []
        self._parts_are_next = False
        mode, self._mode = self._mode, None
        if mode is not None:
            mode.leave()
        self._path.restore()
