"""Whether the weights that a training keeps, to go back to, are copies or the model's own memory.

    if loss < best:
        best, weights = loss, model.state_dict()  # no copies: these tensors are the parameters'
    ...
    model.load_state_dict(weights)  # what the model has anyway: the last weights

Heard are `Module.state_dict` (the outermost call), `Module.load_state_dict` and `torch.save`. Of a
state that was taken, weak references to a few of its tensors are remembered, the versions of some
more, how many steps were made and the line: no tensor and no model is kept alive. Users make other
dicts of the same tensors (`dict(state)`, `{k: v.cpu() ...}`), so that tensors are known again, not
dicts. Where they are new ones of the same memory (`v.detach()`), they are taken to be as old as the
last state that was taken of the model.

No value is read to find that. What is loaded at the end is said to be other weights than those of
the last step (`loop/weights_put_back`) where the smallest parameters differ from theirs.
"""

from __future__ import annotations

import functools
import itertools
import os
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch_device import own_operations
from traindbg.hooks.torch_guard import boundary, guarded
from traindbg.hooks.torch_sources import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from traindbg.hooks.torch_drivers import Drivers
    from traindbg.hooks.torch_guard import Guard
    from traindbg.hooks.torch_sources import Line
    from traindbg.hooks.torch_tensors import Tensors
    from traindbg.hooks.torch_watched import WatchedModels

    Heard = Callable[[], "KeptWeights | None"]  # asks for that of the recording under way

_MOST_KNOWN = 256  # tensors of states that were taken
_AT_ENDS = 2  # of a state's tensors, the first and the last ones are known again
_LOOKED_AT = 8  # of the first values of a dict that is saved
_MOST_HELD = 200  # things in a dict that is saved
_COMPARED = 2  # parameters of a model
_MOST_VALUES = 1 << 16  # of such a one
_MOST_VERSIONS = 48  # of a state that are remembered
_GOLDEN = 0.618033988749895
# Dynamo knows the function by any name.
_is_compiling = torch.compiler.is_compiling
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def _is_plain(tensor: Any) -> bool:
    """Whether it lies in memory that can be compared: no shard, no sparse one, none of `meta`."""
    if type(tensor) not in _PLAIN or tensor.layout is not torch.strided:
        return False
    try:
        return bool(tensor.numel() == 0 or tensor.data_ptr() != 0)
    except RuntimeError:  # of a transform, or without memory
        return False


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two tensors are the same memory, seen in the same way."""
    return (
        one.data_ptr() == other.data_ptr()
        and one.device == other.device
        and one.dtype is other.dtype
        and one.shape == other.shape
        and one.stride() == other.stride()
    )


def _some_of(names: list[str]) -> list[str]:
    """Of many, those at both ends and some between, no multiples of a layer apart."""
    if len(names) <= _MOST_VERSIONS:
        return names
    between = {int(len(names) * (i * _GOLDEN % 1)) for i in range(_MOST_VERSIONS)}
    return [names[i] for i in sorted({0, 1, *between, len(names) - 2, len(names) - 1})]


def _versions(state: dict[str, Any], names: list[str]) -> dict[str, int]:
    """How often tensors of a state were written to; they count with the parameters."""
    return {
        name: tensor._version
        for name in names
        if isinstance(tensor := state[name], torch.Tensor) and not tensor.is_inference()
    }


class Taken:
    """What `Module.state_dict` returned once."""

    def __init__(
        self,
        model: torch.nn.Module,
        versions: dict[str, int],
        recording: KeptWeights | None,
        line: Line | None,
    ) -> None:
        self.model = weakref.ref(model)
        self.line = line
        self.saved: dict[int, int] = {}  # by steps, when it was old: how many steps before
        self._versions = versions
        self._recording = None if recording is None else weakref.ref(recording)
        self._steps = 0 if recording is None else recording.steps

    def steps_in(self, recording: KeptWeights) -> int:
        """After how many steps of a recording; 0: before them."""
        known = None if self._recording is None else self._recording()
        return self._steps if known is recording else 0

    def was_written_to(self) -> bool:
        """Whether parameters have changed since, as far as versions tell."""
        model = self.model()
        named = () if model is None else model.named_parameters(remove_duplicate=False)
        return any(
            name in self._versions
            and not parameter.is_inference()
            and self._versions[name] != parameter._version
            for name, parameter in named
        )


class TakenStates:
    """Of the process."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], Taken]] = {}  # by ids of tensors
        self._last: weakref.WeakKeyDictionary[torch.nn.Module, Taken] = weakref.WeakKeyDictionary()

    def clear(self) -> None:
        """Forgets all."""
        self._known.clear()
        self._last.clear()

    def took(self, model: torch.nn.Module, state: Any, recording: KeptWeights | None) -> None:
        """`model.state_dict()` returned `state`."""
        names = list(state) if isinstance(state, dict) else []
        versions = _versions(state, _some_of(names))
        if not versions or type(model).__hash__ is None:
            return
        taken = Taken(model, versions, recording, sources.caller())
        self._last[model] = taken
        if len(self._known) >= _MOST_KNOWN:
            kept = {key: known for key, known in self._known.items() if known[0]() is not None}
            self._known = kept
        if len(self._known) < _MOST_KNOWN:
            for name in {*names[:_AT_ENDS], *names[-_AT_ENDS:]} & versions.keys():
                self._known[id(state[name])] = weakref.ref(state[name]), taken

    def find(self, values: Iterable[Any]) -> Taken | None:
        """The state that one of these is of."""
        for value in values:
            known = self._known.get(id(value))
            if known is not None and known[0]() is value:
                return known[1]
        return None

    def last_of(self, model: torch.nn.Module) -> Taken | None:
        """The last one that was taken of a model."""
        return None if type(model).__hash__ is None else self._last.get(model)


states = TakenStates()


class Loading(NamedTuple):
    """A model that is about to be given weights."""

    model: weakref.ref[torch.nn.Module]
    names: list[str]  # of its parameters that are
    old: Taken | None  # its own memory, as it was taken so many steps before
    since: int


class KeptWeights:
    """One per recording."""

    def __init__(
        self, guard: Guard, tensors: Tensors, watched: WatchedModels, drivers: Drivers
    ) -> None:
        self.guard = guard
        self.is_followed = False
        self._tensors = tensors
        self._watched = watched
        self._drivers = drivers
        self._saved: list[Taken] = []
        self._steps = -1  # of what follows
        # By ids of parameters: that they were loaded, with their versions then.
        self._loaded: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._is_all = False  # of those that are trained
        self._trained: dict[int, torch.Tensor] = {}  # copies of a few, as the last step left them
        self._differs: dict[int, torch.Tensor | bool] = {}  # what was loaded in their place

    @property
    def steps(self) -> int:
        """That were made."""
        return self.guard.hot.steps

    @boundary("weights kept")
    def loads(self, model: torch.nn.Module, given: Any) -> Loading | None:
        """`model.load_state_dict(given)` is called."""
        if not self.is_followed or self.steps == 0 or not isinstance(given, dict):
            return None
        named = [
            (name, parameter, given[name])
            for name, parameter in model.named_parameters(remove_duplicate=False)
            if name in given
        ]
        if not all(_is_plain(each) for _, *both in named for each in both):
            return None
        named = [each for each in named if each[1].is_floating_point() and each[1].numel() > 0]
        owners = self._watched.owners()
        if not any(id(parameter) in owners for _, parameter, _ in named):
            return None
        names = [name for name, _, _ in named]
        if not all(_is_same(parameter, value) for _, parameter, value in named):
            self._compare(named)
            return Loading(weakref.ref(model), names, None, 0)
        taken = states.find(value for _, _, value in named) or states.last_of(model)
        since = 0 if taken is None else self._since(taken)
        return Loading(weakref.ref(model), [], taken, since) if since > 0 else None

    @boundary("weights kept")
    def loaded(self, loading: Loading) -> None:
        """It was."""
        if loading.old is not None:
            self._forget()
            self._tell("live_state_loaded", loading.old, loading.since)
            return
        model = loading.model()
        if model is None:
            return
        self._at_this_step()
        parameters = dict(model.named_parameters(remove_duplicate=False))
        for name in loading.names:
            if name in parameters and not parameters[name].is_inference():
                known = parameters[name]
                self._loaded[id(known)] = weakref.ref(known), known._version
        trained = [
            id(parameter)
            for model, _ in self._watched.models()
            for parameter in model.parameters()
            if parameter.requires_grad
        ]
        self._is_all = bool(trained) and self._loaded.keys() >= set(trained)

    @boundary("weights kept")
    def saved(self, value: Any) -> None:
        """`torch.save` wrote `value`."""
        if not self.is_followed or self.steps == 0 or not isinstance(value, dict):
            return
        held = value.values() if len(value) <= _MOST_HELD else ()
        for state in (value, *(each for each in held if isinstance(each, dict))):
            taken = states.find(itertools.islice(state.values(), _LOOKED_AT))
            # One that was taken before the training, and is saved each time, shows what there is.
            if taken is None or taken.steps_in(self) == 0:
                continue
            since = self._since(taken)
            if since > 0 and _is_of(taken.model(), state):
                taken.saved[self.steps] = since
                if taken not in self._saved:
                    self._saved.append(taken)

    def at_end(self) -> None:
        """Tells what is known at the end only."""
        for taken in self._saved:
            if len(taken.saved) == 1:
                self._tell("live_state_saved", taken, *taken.saved.values())
        is_now = self._steps == self.steps and self._is_all
        if is_now and all(_is_as_loaded(*known) for known in self._loaded.values()):
            differ = [bool(each) for each in self._differs.values()]
            if any(differ) or not differ:
                self._tensors.tell("weights_put_back", 1, always=True)

    def clear(self) -> None:
        """Drops everything."""
        self._saved.clear()
        self._forget()

    def _tell(self, fact: str, taken: Taken, since: int) -> None:
        place = ""
        if taken.line is not None:
            sources.put("weights_taken", taken.line)
            place = f"/{os.path.basename(taken.line.file)}:{taken.line.number}"
        guarded("description", self._drivers.describe_again)
        self._tensors.tell(f"{fact}{place}", since, always=True)

    def _since(self, taken: Taken) -> int:
        """How many steps ago a state was taken; 0 also where they did not change the weights."""
        since = self.steps - taken.steps_in(self)
        return since if since > 0 and (taken.was_written_to() or self._is_fused(taken)) else 0

    def _is_fused(self, taken: Taken) -> bool:
        """Whether the optimizer that drives steps these weights, where no version tells of it."""
        model = taken.model()
        optimizer = None if self._drivers.driver is None else self._drivers.driver()
        if model is None or optimizer is None:
            return False
        groups = (group for group in optimizer.param_groups if group.get("fused"))
        stepped = {id(parameter) for group in groups for parameter in group["params"]}
        return any(id(parameter) in stepped for parameter in model.parameters())

    def _forget(self) -> None:
        self._loaded.clear()
        self._trained.clear()
        self._differs.clear()
        self._is_all = False

    def _at_this_step(self) -> None:
        """What was loaded before the last step counts no more."""
        if self._steps != self.steps:
            self._steps = self.steps
            self._forget()

    def _compare(self, named: list[tuple[str, torch.nn.Parameter, torch.Tensor]]) -> None:
        """Whether what is loaded is what the last step has left, by the smallest parameters.

        A device is not waited for.
        """
        self._at_this_step()
        trained = [each for each in named if each[1].requires_grad]
        trained.sort(key=lambda each: each[1].numel())
        for _, parameter, value in trained[:_COMPARED]:
            if parameter.numel() > _MOST_VALUES or parameter.shape != value.shape:
                continue
            with own_operations():
                if id(parameter) not in self._trained:
                    self._trained[id(parameter)] = parameter.detach().clone()
                before = self._trained[id(parameter)]
                self._differs[id(parameter)] = (before != value.detach().to(before)).any()


def _is_as_loaded(parameter: weakref.ref[torch.Tensor], version: int) -> bool:
    """Whether nothing has written to a parameter since, as long as it is there."""
    known = parameter()
    return known is None or known._version == version


def _is_of(model: torch.nn.Module | None, state: dict[str, Any]) -> bool:
    """Whether all parameters of a model that are in a state are its own memory."""
    if model is None:
        return False
    named = [
        (parameter, state[name])
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if name in state
    ]
    return bool(named) and all(
        _is_plain(parameter) and _is_plain(value) and _is_same(parameter, value)
        for parameter, value in named
    )


def listening_taken(heard: Heard, original: Any) -> Callable[..., Any]:
    """`Module.state_dict`. Modules call it of their parts, with the dict that these are to fill."""

    @functools.wraps(original)
    def state_dict(
        self: Any, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        state = original(self, *args, destination=destination, prefix=prefix, keep_vars=keep_vars)
        if destination is None and not args and not _is_compiling():
            guarded("weights kept", states.took, self, state, heard())
        return state

    return state_dict


def listening_loaded(heard: Heard, original: Any) -> Callable[..., Any]:
    """`Module.load_state_dict`."""

    @functools.wraps(original)
    def load_state_dict(*args: Any, **kwargs: Any) -> Any:
        kept = heard()
        if kept is None or not args or not isinstance(args[0], torch.nn.Module):
            return original(*args, **kwargs)
        loading = kept.loads(args[0], args[1] if len(args) > 1 else kwargs.get("state_dict"))
        result = original(*args, **kwargs)
        if loading is not None:
            kept.loaded(loading)
        return result

    return load_state_dict


def listening_save(heard: Heard, original: Any) -> Callable[..., Any]:
    """`torch.save`."""

    @functools.wraps(original)
    def save(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        kept = heard()
        if kept is not None:
            kept.saved(args[0] if args else kwargs.get("obj"))
        return result

    return save
