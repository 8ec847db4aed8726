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

Some hold such a state on purpose: they write to its tensors (`state[k].clamp_()`), and load it or
not. So it counts as old only where what optimizers do explains how often the parameters were
written to. What is saved, or given to another model, is told at the end, and only where it was kept
as an early stopping does: its line took several states, then none for longer, and one is used once.

No value is read to find that. What is loaded at the end is said to be other weights than those of
the last step (`loop/weights_put_back`) where some values of the smallest parameters differ from
theirs; the same tells of a live state that is loaded to undo that (`loop/live_state_swapped`), and
of a copy of the whole model, alive at the end, where another model than the one that is trained was
evaluated after the last step (`loop/copy_evaluated`). Of
each state that is taken the first values of one parameter are copied: they tell of how many steps
ago the weights are that were put back (`loop/weights_put_back_since`), and how many states were
taken of the model since (`loop/weights_put_back_later`). The same is copied before the first step:
it tells that weights of then are loaded in the middle of a training (`loop/weights_of_start`).

A whole model that `torch.load` returns after the last step is lost where only a function's own name
gets it (`text.rebound`), and the model that is trained, whose weights are others, keeps them until
the end (`loop/read_model_lost`). Weights that are taken where a value is better than the best one
are those of the last evaluation, not of the best, where that is never set (`text.best_unset`,
`loop/best_never_set`).
"""

from __future__ import annotations

import functools
import itertools
import os
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg import _core
from traindbg.hooks.torch.base.device import capturing_graph, own_operations, version_of
from traindbg.hooks.torch.base.guard import boundary, guarded
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.text.best_unset import BestValues
from traindbg.hooks.torch.text.chosen import is_chosen
from traindbg.hooks.torch.text.rebound import Rebound, rebound
from traindbg.hooks.torch.updates.resume import dicts_in, named_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from traindbg.hooks.torch.base.guard import Guard
    from traindbg.hooks.torch.base.sources import Line
    from traindbg.hooks.torch.base.tensors import Tensors
    from traindbg.hooks.torch.base.watched import WatchedModels
    from traindbg.hooks.torch.steps.drivers import Drivers

    Heard = Callable[[], "KeptWeights | None"]  # asks for that of the recording under way

_MOST_KNOWN = 256  # tensors of states that were taken
_AT_ENDS = 2  # of a state's tensors, the first and the last ones are known again
_LOOKED_AT = 8  # of the first values of a dict that is saved
_COMPARED = 8  # parameters of a model
_MOST_VALUES = 1 << 16  # of such a one: the first ones
_MOST_VERSIONS = 48  # of a state that are remembered
_GOLDEN = 0.618033988749895
_FIRST_VALUES = 16  # of a parameter, by which a state is known again
_MOST_STATES = 256
_FEW_STEPS = 4  # fewer do not tell what each of them writes
_AKIN = 0.3  # cosine of two states of the same weights
_MOST_STARTS = 16  # times that the weights of the start are told
_MOST_ASKED = 64  # times that it is asked for them: a device is waited for each time
_MATRIX = 2  # dimensions
_STARTS = 4  # parameters, of which the first one is known again that is not all ones, or zeros
_USES = 2  # of states of a line: as good as many
_FAR = 2  # times as many steps as between two states of a line: it has not taken one for long
# How often a step writes to a parameter, at most; once more where it decays it by itself.
_WRITES = {
    "Adadelta": 1,
    "Adagrad": 1,
    "Adam": 1,
    "AdamW": 1,
    "Adamax": 1,
    "NAdam": 2,
    "RAdam": 1,
    "RMSprop": 1,
    "SGD": 1,
}
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


def _first_values(tensor: torch.Tensor) -> torch.Tensor:
    """No copy, whatever its strides."""
    for dim, size in enumerate(tensor.shape):
        if tensor.numel() <= _MOST_VALUES:
            break
        tensor = tensor.narrow(dim, 0, max(1, _MOST_VALUES // (tensor.numel() // size)))
    return tensor


def _beginning_of(tensor: torch.Tensor) -> torch.Tensor:
    return _first_values(tensor.detach()).reshape(-1)[:_FIRST_VALUES].clone()


def _differ(before: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Whether a value that is loaded is another one, as far as its own type tells."""
    value = _first_values(value.detach()).to(before.device)
    return (before.to(value.dtype) != value).any()


def _is_a_copy(thing: torch.nn.Module, model: torch.nn.Module) -> bool:
    """Whether it has the model's parameters by name and shape, trained or not as they are."""

    def form(module: torch.nn.Module) -> list[tuple[str, torch.Size, bool]]:
        return [(name, p.shape, p.requires_grad) for name, p in module.named_parameters()]

    try:
        return form(thing) == form(model)
    except Exception:  # half made: its __init__ raised, or a parameter has no shape yet
        return False


def _are_akin(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether values began as the same ones: of two models that were drawn apart they are not."""
    if not (_is_plain(one) and _is_plain(other)):
        return False
    both = [
        _first_values(each.detach()).flatten().to("cpu", torch.float64) for each in (one, other)
    ]
    size = float(both[0].norm() * both[1].norm())
    return size > 0 and float(both[0] @ both[1]) > _AKIN * size


def _is_trained(model: torch.nn.Module) -> bool:
    """Whether an optimizer has a parameter of it."""
    parameters = {id(parameter) for parameter in model.parameters()}
    return any(
        id(parameter) in parameters
        for optimizer in _core.instances_of(torch.optim.Optimizer)
        for group in vars(optimizer).get("param_groups", ())  # its __init__ may not be over
        for parameter in group.get("params", ())
    )


def _is_foreign(optimizer: torch.optim.Optimizer) -> bool:
    """Whether it is none of PyTorch's: many write to `parameter.data`, which no version tells."""
    return not type(optimizer).__module__.startswith("torch.optim")


def _writes(optimizer: torch.optim.Optimizer, group: dict[str, Any]) -> int | None:
    """How often a step of it writes to a parameter, at most; None: that is not known."""
    name = type(optimizer).__name__
    if _is_foreign(optimizer) or group.get("fused") or name not in _WRITES:
        return None
    decays = group.get("decoupled_weight_decay", name == "AdamW")
    return _WRITES[name] + (1 if decays and group.get("weight_decay") else 0)


class Series:
    """States that one line takes of one model, in one recording."""

    def __init__(self, line: Line | None) -> None:
        self.line = line
        self.uses: dict[int, tuple[str, int]] = {}  # by steps: the fact, and how many before
        self._last = 0
        self._gap = 0  # the fewest steps between two

    def took(self, steps: int) -> None:
        """One more, after so many steps."""
        if 0 < self._last < steps:
            gap = steps - self._last
            self._gap = min(self._gap, gap) if self._gap else gap
        self._last = steps

    def used(self, fact: str, steps: int, since: int) -> None:
        """One was, which had been taken so many steps before; 0: it is what it seems to be."""
        if len(self.uses) < _USES or steps in self.uses:
            self.uses[steps] = max(self.uses.get(steps, ("", -1)), (fact, since), key=_since_of)

    def kept(self) -> tuple[str, int] | None:
        """Where one of several was kept for long, and used after one step only: how."""
        if len(self.uses) != 1 or not self._gap:
            return None
        (use,) = self.uses.values()
        return use if _since_of(use) >= _FAR * self._gap else None


def _since_of(use: tuple[str, int]) -> int:
    return use[1]


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
        self.series = None if recording is None else recording.series_of(model, line)
        # Not those that were loaded after the last step.
        self.is_trained = recording is not None and not recording.holds_loaded(model)
        self._versions = versions
        self._recording = None if recording is None else weakref.ref(recording)
        self._steps = 0 if recording is None else recording.steps

    def steps_in(self, recording: KeptWeights) -> int:
        """After how many steps of a recording; 0: before them."""
        known = None if self._recording is None else self._recording()
        return self._steps if known is recording else 0

    def written(self) -> list[tuple[torch.Tensor, int]]:
        """Parameters, and how often they were written to since, but by loading."""
        model = self.model()
        named = () if model is None else named_in(model)
        return [
            (parameter, states.version_of(parameter) - self._versions[name])
            for name, parameter in named
            if name in self._versions
        ]


class TakenStates:
    """Of the process."""

    def __init__(self) -> None:
        # By ids of tensors, the oldest first.
        self._known: dict[int, tuple[weakref.ref[torch.Tensor], Taken]] = {}
        self._last: weakref.WeakKeyDictionary[torch.nn.Module, Taken] = weakref.WeakKeyDictionary()
        # How often loading wrote to parameters, by their ids, since a state was taken.
        self._loaded: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}

    def clear(self) -> None:
        """Forgets all."""
        self._known.clear()
        self._last.clear()
        self._loaded.clear()

    @property
    def is_any(self) -> bool:
        """Whether one was taken of a model that is there."""
        return bool(self._last)

    def took(self, model: torch.nn.Module, state: Any, recording: KeptWeights | None) -> None:
        """`model.state_dict()` returned `state`."""
        if not isinstance(state, dict) or type(model).__hash__ is None:
            return
        named = {name: parameter for name, parameter in named_in(model) if name in state}
        if not named:
            return
        versions = {name: self.version_of(named[name]) for name in _some_of(list(named))}
        taken = Taken(model, versions, recording, sources.caller())
        self._last[model] = taken
        if recording is not None and taken.series is not None:
            taken.series.took(recording.steps)
            recording.took(model, state)
        names = list(state)
        at_ends = {name: state[name] for name in (*names[:_AT_ENDS], *names[-_AT_ENDS:])}
        for tensor in at_ends.values():
            if isinstance(tensor, torch.Tensor):
                self._known.pop(id(tensor), None)
                self._known[id(tensor)] = weakref.ref(tensor), taken
        if len(self._known) > _MOST_KNOWN:
            kept = {key: known for key, known in self._known.items() if known[0]() is not None}
            for key in list(kept)[: max(0, len(kept) - _MOST_KNOWN)]:
                del kept[key]
            self._known = kept

    def loads(self, model: torch.nn.Module) -> list[tuple[torch.Tensor, int]]:
        """A model is about to be given weights: its parameters, with their versions."""
        return [(parameter, version_of(parameter)) for _, parameter in named_in(model)]

    def loaded(self, before: list[tuple[torch.Tensor, int]]) -> None:
        """It was."""
        self._loaded = {k: known for k, known in self._loaded.items() if known[0]() is not None}
        for parameter, version in dict(zip(map(_id_of, before), before, strict=True)).values():
            more = version_of(parameter) - version
            if more > 0:
                known = self._loaded.get(id(parameter))
                self._loaded[id(parameter)] = (
                    weakref.ref(parameter),
                    more + (known[1] if known is not None else 0),
                )

    def version_of(self, parameter: torch.Tensor) -> int:
        """How often it was written to, but by loading."""
        known = self._loaded.get(id(parameter))
        is_it = known is not None and known[0]() is parameter
        return version_of(parameter) - (known[1] if known is not None and is_it else 0)

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


def _id_of(known: tuple[torch.Tensor, int]) -> int:
    return id(known[0])


class Loading(NamedTuple):
    """A model that is about to be given weights."""

    model: weakref.ref[torch.nn.Module]
    names: list[str]  # of its parameters that hold what was loaded, afterwards
    old: Taken | None  # its own memory, as it was taken so many steps before
    since: int
    fact: str  # that is told of it
    is_start: bool = False  # it is given what it was before the first step


class _Beginnings(NamedTuple):
    """How the states that were taken of one model begin, in one parameter."""

    name: str
    values: dict[int, torch.Tensor]  # the first ones, by the steps that were made
    chosen: set[int]  # of these steps: weights were taken as the better ones (`text.chosen`)

    def since(self, values: torch.Tensor, steps: int) -> int | None:
        """How many steps ago alone it began with `values`. Waits for a device."""
        found = [
            taken
            for taken, known in self.values.items()
            if known.shape == values.shape and torch.equal(known.to(values), values)
        ]
        return steps - found[0] if len(found) == 1 else None

    def later(self, taken_at: int) -> int:
        """How many states were taken after more steps."""
        return sum(taken > taken_at for taken in self.values)


class _Start(NamedTuple):
    """How a parameter began before the first step."""

    parameter: weakref.ref[torch.Tensor]
    values: torch.Tensor  # the first ones


class _Lost(NamedTuple):
    """A model that was read, and whose weights the trained one was not given."""

    found: Rebound
    steps: int  # that were made then
    # Of the trained one: the memory of a few small parameters, which is looked at when it is gone
    # itself, and copies of what they were.
    as_left: list[tuple[torch.Tensor, torch.Tensor]]


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
        self._series: weakref.WeakKeyDictionary[torch.nn.Module, dict[Line | None, Series]] = (
            weakref.WeakKeyDictionary()
        )
        self._used: list[Series] = []
        self._is_told = False  # a live state that was loaded
        self._steps = -1  # of what follows
        # By ids of parameters: that they were loaded, with their versions then.
        self._loaded: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._is_all = False  # of those that are trained
        self._trained: dict[int, torch.Tensor] = {}  # copies of a few, as the last step left them
        self._differs: dict[int, torch.Tensor | bool] = {}  # what was loaded in their place
        # By models: a parameter's name, and its first values in the states that were taken, by the
        # steps made then.
        self._begin_with: weakref.WeakKeyDictionary[torch.nn.Module, _Beginnings] = (
            weakref.WeakKeyDictionary()
        )
        self._put_back: tuple[_Beginnings, torch.Tensor] | None = None  # what was loaded last
        self._start: list[_Start] | None = None  # None: the first step is yet to come
        self._starts = self._asked = 0  # times that it was loaded, and that it was asked for
        self._best = BestValues()
        self._lost: _Lost | None = None  # the last model that was read, where only a name got it

    @property
    def steps(self) -> int:
        """That were made."""
        return self.guard.hot.steps

    def series_of(self, model: torch.nn.Module, line: Line | None) -> Series:
        """What a line takes of a model."""
        lines = self._series.setdefault(model, {})
        return lines.setdefault(line, Series(line))

    def took(self, model: torch.nn.Module, state: dict[str, Any]) -> None:
        """A state was taken of a model: how it begins is remembered, where it is trained."""
        if not self.is_followed or self.steps == 0:
            return
        if not self._are_watched(parameter for _, parameter in named_in(model)):
            return
        guarded("best values", self._best.kept)
        known = self._begin_with.get(model)
        if known is None:
            trained = [(p.numel(), name) for name, p in named_in(model) if p.grad is not None]
            if not trained:
                return
            # A few values may stand still, as a limit that is reached.
            _, _, name = min((size < _FIRST_VALUES, size, name) for size, name in trained)
            known = self._begin_with[model] = _Beginnings(name, {}, set())
        value = state.get(known.name)
        if isinstance(value, torch.Tensor) and _is_plain(value) and not capturing_graph(value):
            with own_operations():
                known.values[self.steps] = _beginning_of(value)
            if guarded("chosen weights", is_chosen):
                known.chosen.add(self.steps)
        if len(known.values) > _MOST_STATES:
            oldest = next(iter(known.values))
            del known.values[oldest]
            known.chosen.discard(oldest)

    def begins(self, optimizer: torch.optim.Optimizer) -> None:
        """The first step of all is about to be made."""
        if not self.is_followed or self._start is not None:
            return
        found = [
            (parameter.numel(), number, parameter)
            for number, parameter in enumerate(
                p for g in optimizer.param_groups for p in g["params"]
            )
            if parameter.grad is not None and parameter.numel() >= _FIRST_VALUES
        ]
        if not found:
            return
        # Scales and shifts begin alike in all models: matrices come first.
        found.sort(key=lambda each: (each[2].dim() < _MATRIX, *each[:2]))
        self._start = []
        for _, _, parameter in found[:_STARTS]:
            if _is_plain(parameter) and not capturing_graph(parameter):
                with own_operations():
                    self._start.append(_Start(weakref.ref(parameter), _beginning_of(parameter)))

    def _is_start(self, named: list[tuple[str, torch.nn.Parameter, torch.Tensor]]) -> bool:
        """Whether a model is given what it began with, in place of others. Waits for a device."""
        if not self._start or self._starts >= _MOST_STARTS:
            return False
        if self._asked >= _MOST_ASKED or any(capturing_graph(value) for *_, value in named):
            return False
        given = {id(parameter): (parameter, value) for _, parameter, value in named}
        if self._asked == 0:
            with own_operations():
                # Ones and zeros tell nothing: the weights of another seed have them, too.
                self._start = [
                    each for each in self._start if bool((each.values != each.values[0]).any())
                ][:1]
        self._asked += 1
        for start in self._start:
            parameter, value = given.get(id(start.parameter()), (None, None))
            if parameter is not None and value is not None and value.shape == parameter.shape:
                with own_operations():
                    now = _beginning_of(parameter).to(start.values) != start.values
                    then = _beginning_of(value).to(start.values) == start.values
                    return bool(now.any() & then.all())
        return False

    def holds_loaded(self, model: torch.nn.Module) -> bool:
        """Whether parameters of a model were loaded after the last step."""
        is_now = self._steps == self.steps
        return is_now and any(id(parameter) in self._loaded for _, parameter in named_in(model))

    @boundary("weights kept")
    def loads(self, model: torch.nn.Module, given: Any) -> Loading | None:
        """`model.load_state_dict(given)` is called."""
        if not self.is_followed or self.steps == 0 or not isinstance(given, dict):
            return None
        named = [
            (name, parameter, given[name]) for name, parameter in named_in(model) if name in given
        ]
        taken = states.find(value for _, _, value in named)
        if not self._are_watched(parameter for _, parameter, _ in named):
            self._use("live_state_given", taken, given)
            return None
        if not all(_is_plain(each) for _, *both in named for each in both):
            return None
        named = [each for each in named if each[1].is_floating_point() and each[1].numel() > 0]
        if not all(_is_same(parameter, value) for _, parameter, value in named):
            if taken is not None and taken.model() is not model:
                self._use("live_state_given", taken, given)
            names = [name for name, _, _ in named]
            self._compare(named)
            self._loads_beginning(model, given)
            is_start = self._is_start(named)
            return Loading(weakref.ref(model), names, None, 0, "", is_start)
        if not named:
            return None
        if taken is None and not any(isinstance(value, torch.nn.Parameter) for *_, value in named):
            taken = states.last_of(model)
        intact = [name for name, parameter, _ in named if self._is_intact(parameter)]
        fact, since = "", 0
        if taken is not None and self._is_swapped(taken, [parameter for _, parameter, _ in named]):
            fact, since = "live_state_swapped", self.steps - taken.steps_in(self)
        elif taken is not None and (since := self._since(taken)) > 0:
            fact = "live_state_loaded"
        return Loading(weakref.ref(model), intact, taken, since, fact)

    @boundary("weights kept")
    def loaded(self, loading: Loading) -> None:
        """It was."""
        if loading.old is not None and loading.fact:
            self._tell(loading.fact, loading.old.line, loading.since)
            self._is_told = True
        model = loading.model()
        if model is None or not loading.names:
            return
        self._at_this_step()
        parameters = dict(named_in(model))
        for name in loading.names:
            if name in parameters and not parameters[name].is_inference():
                known = parameters[name]
                self._loaded[id(known)] = weakref.ref(known), known._version
        trained = [
            id(parameter)
            for model, _ in self._watched.models()
            for _, parameter in named_in(model)
            if parameter.requires_grad
        ]
        self._is_all = bool(trained) and self._loaded.keys() >= set(trained)
        if self._is_all and loading.is_start:
            self._starts += 1
            self._tensors.tell("weights_of_start", self.steps, always=True)

    @boundary("weights kept")
    def saved(self, value: Any) -> None:
        """`torch.save` wrote `value`."""
        if not self.is_followed or self.steps == 0 or not states.is_any:
            return
        for state in dicts_in(value):
            taken = states.find(itertools.islice(state.values(), _LOOKED_AT))
            self._use("live_state_saved", taken, state)

    @boundary("weights kept")
    def read(self, value: torch.nn.Module) -> None:
        """`torch.load` returned a model. A device is waited for where the text says it is lost."""
        if not self.is_followed or self.steps == 0:
            return
        models = [model for model, _ in self._watched.models()]
        if len(models) != 1 or not _is_a_copy(value, models[0]):
            return
        found = rebound(models[0])
        if found is None:
            self._lost = None
            return
        others = dict(named_in(value))
        named = [each for each in named_in(models[0]) if each[1].requires_grad]
        named = [each for each in named if 0 < each[1].numel() <= _MOST_VALUES]
        named.sort(key=lambda each: each[1].numel())
        pairs = [(parameter, others[name]) for name, parameter in named[:_COMPARED]]
        if not all(_is_plain(one) and not capturing_graph(one) for both in pairs for one in both):
            return
        with own_operations():
            if any(bool(_differ(one.detach(), other)) for one, other in pairs):
                as_left = [(one.detach(), one.detach().clone()) for one, _ in pairs]
                self._lost = _Lost(found, self.steps, as_left)

    def _tell_of_lost(self) -> None:
        """A model was read after the last step, and the one that is trained has not changed."""
        lost = self._lost
        if lost is None or lost.steps != self.steps:
            return
        with own_operations():
            if any(bool(_differ(before, now)) for now, before in lost.as_left):
                return
        self._tell("read_model_lost", lost.found.line, 1)

    def at_end(self, has_evaluated_another: bool) -> None:
        """Tells what is known at the end only.

        `has_evaluated_another`: after the last step a model was evaluated that is not watched.
        """
        guarded("weights kept", self._tell_of_lost)
        if (unset := self._best.unset()) is not None:
            self._tell("best_never_set", unset.line, unset.times)
            self._tell("best_never_set_worse", unset.line, unset.worse)
        kept = ((series.line, series.kept()) for series in self._used)
        for line, use in kept if not self._is_told else ():
            if use is not None:
                self._tell(use[0], line, use[1])
                break
        is_now = self._steps == self.steps and self._is_all
        is_now = is_now and all(_is_as_loaded(*known) for known in self._loaded.values())
        if is_now and any(bool(each) for each in self._differs.values()):
            self._tensors.tell("weights_put_back", 1, always=True)
            if self._put_back is not None:
                taken, values = self._put_back
                since = taken.since(values, self.steps)
                if since is not None:
                    self._tensors.tell("weights_put_back_since", since, always=True)
                    later = taken.later(self.steps - since)
                    self._tensors.tell("weights_put_back_later", later, always=True)
                    if self.steps - since in taken.chosen:
                        self._tensors.tell("weights_put_back_chosen", 1, always=True)
        elif self.is_followed and has_evaluated_another and self._keeps_a_copy():
            self._tensors.tell("copy_evaluated", 1, always=True)

    def _keeps_a_copy(self) -> bool:
        """Whether a copy of the one model is alive that no optimizer trains, with other weights."""
        models = self._watched.models()
        if len(models) != 1:
            return False
        model = models[0][0]
        own = {id(part) for part in model.modules()}
        named = [each for each in named_in(model) if each[1].requires_grad]
        named.sort(key=lambda each: each[1].numel())
        for thing in _core.instances_of(type(model), exact=True) if named else ():
            if id(thing) in own or not _is_a_copy(thing, model):
                continue
            others = dict(thing.named_parameters())
            pairs = [(parameter, others[name]) for name, parameter in named[:_COMPARED]]
            if not all(
                _is_plain(one) and not capturing_graph(one) for both in pairs for one in both
            ):
                continue
            with own_operations():
                is_other = any(bool(_differ(_first_values(mine), its)) for mine, its in pairs)
                is_other = is_other and _are_akin(named[-1][1], others[named[-1][0]])
            if is_other and not _is_trained(thing):
                return True
        return False

    def clear(self) -> None:
        """Drops everything."""
        self._used.clear()
        self._series.clear()
        self._begin_with.clear()
        self._best.clear()
        self._lost = self._start = None
        self._forget()

    def _tell(self, fact: str, line: Line | None, since: int) -> None:
        place = ""
        if line is not None:
            sources.put("weights_taken", line)
            place = f"/{os.path.basename(line.file)}:{line.number}"
        guarded("description", self._drivers.describe_again)
        self._tensors.tell(f"{fact}{place}", since, always=True)

    def _are_watched(self, parameters: Iterable[torch.Tensor]) -> bool:
        """Whether some are of a watched model."""
        owners = self._watched.owners()
        return any(id(parameter) in owners for parameter in parameters)

    def _use(self, fact: str, taken: Taken | None, state: dict[str, Any]) -> None:
        """A state is saved, or given to another model, which changes no weights of its own."""
        model = None if taken is None else taken.model()
        if taken is None or taken.series is None or model is None:
            return
        if not self._are_watched(parameter for _, parameter in named_in(model)):
            return
        if _is_of(model, state):
            # One that was taken before the training shows what there is.
            since = self._since(taken) if taken.steps_in(self) > 0 else 0
            taken.series.used(fact, self.steps, since)
            if taken.series not in self._used:
                self._used.append(taken.series)

    def _since(self, taken: Taken) -> int:
        """How many steps ago a state was taken.

        0 also where they did not change the weights, and where something else may have.
        """
        since = self.steps - taken.steps_in(self)
        if since <= 0:
            return 0
        written = taken.written()
        groups: dict[int, list[tuple[torch.optim.Optimizer, dict[str, Any]]]] = {}
        for optimizer in self._watched.optimizers():
            for group in optimizer.param_groups:
                for parameter in group["params"]:
                    groups.setdefault(id(parameter), []).append((optimizer, group))
        is_stepped = any(times != 0 for _, times in written) or any(
            parameter.requires_grad and (group.get("fused") or _is_foreign(optimizer))
            for parameter, _ in written
            for optimizer, group in groups.get(id(parameter), ())
        )
        for parameter, times in written:
            known = [_writes(*each) for each in groups.get(id(parameter), ())]
            each_writes = [most for most in known if most is not None]
            if known and len(each_writes) == len(known):
                is_explained = 0 <= times <= max(each_writes) * since
            else:
                is_explained = times == 0 or (since >= _FEW_STEPS and times % since == 0)
            if not is_explained or (times != 0 and not parameter.requires_grad):
                return 0
        return since if is_stepped else 0

    def _is_intact(self, parameter: torch.Tensor) -> bool:
        """Whether it holds what was loaded after the last step."""
        known = self._loaded.get(id(parameter))
        return known is not None and self._steps == self.steps and _is_as_loaded(*known)

    def _is_swapped(self, taken: Taken, parameters: list[torch.nn.Parameter]) -> bool:
        """Whether a live state is to bring back what other weights were loaded over.

        Where some were, a device is waited for.
        """
        if not taken.is_trained and taken.steps_in(self) == self.steps:
            return False
        loaded = [each for each in parameters if id(each) in self._loaded]
        if not loaded or not all(map(self._is_intact, loaded)):
            return False
        return any(bool(self._differs.get(id(parameter), False)) for parameter in loaded)

    def _forget(self) -> None:
        self._loaded.clear()
        self._trained.clear()
        self._differs.clear()
        self._is_all = False
        self._put_back = None

    def _loads_beginning(self, model: torch.nn.Module, given: dict[str, Any]) -> None:
        """What a model is given begins like this."""
        known = self._begin_with.get(model) if type(model).__hash__ is not None else None
        value = None if known is None else given.get(known.name)
        self._put_back = None
        if known is not None and isinstance(value, torch.Tensor) and not capturing_graph(value):
            with own_operations():
                self._put_back = known, _beginning_of(value)

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
        # What was loaded before is not what the step has left.
        fresh = [each for each in trained if id(each[1]) not in self._loaded]
        # Those without a gradient may be used by nothing.
        fresh.sort(key=lambda each: (each[1].grad is None, each[1].numel()))
        with own_operations():
            for _, parameter, _ in fresh[:_COMPARED]:
                if id(parameter) not in self._trained:
                    self._trained[id(parameter)] = _first_values(parameter.detach()).clone()
            for _, parameter, value in trained:
                before = self._trained.get(id(parameter))
                if before is not None and parameter.shape == value.shape:
                    self._differs[id(parameter)] = _differ(before, value)


def _is_as_loaded(parameter: weakref.ref[torch.Tensor], version: int) -> bool:
    """Whether nothing has written to a parameter since, as long as it is there."""
    known = parameter()
    return known is None or known._version == version


def _is_of(model: torch.nn.Module | None, state: dict[str, Any]) -> bool:
    """Whether all parameters of a model that are in a state are its own memory."""
    if model is None:
        return False
    named = [(parameter, state[name]) for name, parameter in named_in(model) if name in state]
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
        is_part = destination is not None or bool(args and args[0] is not None)
        # Those who ask for the parameters themselves know what they have.
        is_live = keep_vars or (len(args) > 2 and bool(args[2]))
        if not (is_part or is_live or _is_compiling()):
            guarded("weights kept", states.took, self, state, heard())
        return state

    return state_dict


def listening_loaded(heard: Heard, original: Any) -> Callable[..., Any]:
    """`Module.load_state_dict`."""

    @functools.wraps(original)
    def load_state_dict(*args: Any, **kwargs: Any) -> Any:
        is_model = bool(args) and isinstance(args[0], torch.nn.Module) and not _is_compiling()
        if not is_model or not (states.is_any or heard() is not None):
            return original(*args, **kwargs)
        kept = heard()
        loading = None
        if kept is not None:
            loading = kept.loads(args[0], args[1] if len(args) > 1 else kwargs.get("state_dict"))
        before = guarded("weights kept", states.loads, args[0]) if states.is_any else None
        result = original(*args, **kwargs)
        if before is not None:
            guarded("weights kept", states.loaded, before)
        if kept is not None and loading is not None:
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


def listening_read(heard: Heard, original: Any) -> Callable[..., Any]:
    """`torch.load`."""

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        value = original(*args, **kwargs)
        kept = heard() if isinstance(value, torch.nn.Module) else None
        if kept is not None:
            kept.read(value)
        return value

    return load
