"""Whether a training goes on from a checkpoint with an optimizer that has forgotten everything.

Calls of `torch.load`, `load_state_dict` and `state_dict` are listened to. What is remembered of
them are weak references and the settings of optimizers: numbers, never a tensor.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from traindbg.hooks.torch.base.device import version_of
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.later import brought
from traindbg.hooks.torch.updates.fresh import looks_drawn, looks_random_table, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from traindbg.hooks.torch.base.later import Later
    from traindbg.hooks.torch.updates.fresh import Measures

_MOST_STATES = 64
_MOST_HELD = 200  # things in a dict or list of a checkpoint that are looked at
_DEPTH = 3
_NEAR = 0.03  # of a rate, from one step to the next
_MOST_INITIALISED = 4  # times that something initialises a parameter
# What a schedule changes, or puts beside the rest.
_CHANGING = frozenset({"betas", "initial_lr", "lr", "max_lr", "min_lr", "momentum", "params"})
_CHANGING_BY_NAME = ("base_", "max_", "min_", "swa_")

Settings = tuple[tuple[Any, ...], ...]  # of each group: parameters, rate, and what does not change


def named_in(model: torch.nn.Module, prefix: str = "") -> Iterator[tuple[str, torch.nn.Parameter]]:
    """A model's parameters, by all their names.

    Asked are its tables: classes have a `named_parameters` of their own, with other arguments, and
    `Module.named_parameters` wants modules that have a hash.
    """
    for name, parameter in model._parameters.items():
        if parameter is not None:
            yield prefix + name, parameter
    for name, child in model._modules.items():
        if child is not None:
            yield from named_in(child, f"{prefix}{name}.")


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, int, float)):
        return float(value)
    if isinstance(value, torch.Tensor) and value.is_cpu and value.numel() == 1:
        return float(value.detach())
    return None


def _settings(groups: Any) -> Settings | None:
    """How an optimizer was made, told from its groups or those of its state."""
    if not isinstance(groups, (list, tuple)) or not groups or len(groups) > _MOST_HELD:
        return None
    found: list[tuple[Any, ...]] = []
    for group in groups:
        if not isinstance(group, dict) or "params" not in group:
            return None
        rate = _number(group.get("initial_lr", group.get("lr")))
        if rate is None:
            return None
        kept = [
            (name, value)
            for name, value in sorted(group.items())
            if isinstance(value, (bool, int, float))
            and name not in _CHANGING
            and not name.startswith(_CHANGING_BY_NAME)
        ]
        found.append((len(group["params"]), float(f"{rate:.6g}"), *kept))
    return tuple(found)


def _is_set_by_hand(optimizer: torch.optim.Optimizer) -> bool:
    """Whether its rate is another one than it was made with: a schedule that is written out."""
    made = _number(getattr(optimizer, "defaults", {}).get("lr"))
    return all(_number(group.get("lr")) != made for group in optimizer.param_groups)


def _are_near(one: Settings, two: Settings) -> bool:
    """Equal but for rates, and these as alike as those of two steps of a schedule."""
    return len(one) == len(two) and all(
        a[0] == b[0] and a[2:] == b[2:] and abs(a[1] - b[1]) <= _NEAR * max(a[1], b[1])
        for a, b in zip(one, two, strict=True)
    )


def _is_state(value: dict[str, Any]) -> bool:
    return isinstance(value.get("state"), dict) and "param_groups" in value


def dicts_in(value: Any, depth: int = _DEPTH) -> Iterator[dict[str, Any]]:
    """A checkpoint and what it holds, but for what states of optimizers hold."""
    if isinstance(value, dict):
        yield value
        held = list(value.values()) if len(value) <= _MOST_HELD and not _is_state(value) else []
    elif isinstance(value, (list, tuple)):
        held = list(value[:_MOST_HELD])
    else:
        return
    if depth > 0:
        for item in held:
            if isinstance(item, (dict, list, tuple)):
                yield from dicts_in(item, depth - 1)


def _states_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """States of optimizers in what was loaded."""
    return filter(_is_state, dicts_in(value))


def _has_stepped(state: Any) -> bool:
    """Of a parameter's state. Adagrad makes it when it is made itself, with no steps counted."""
    return bool(state) and (not isinstance(state, dict) or _number(state.get("step")) != 0)


def _keeps_state(optimizer: torch.optim.Optimizer) -> bool:
    """Whether it would miss what it knew. Of plain SGD there is nothing."""
    if type(optimizer).__name__ != "SGD":
        return True
    return any((_number(group.get("momentum")) or 0) > 0 for group in optimizer.param_groups)


class MadeAs(NamedTuple):
    """What is equal of two optimizers of which one could go on in place of the other."""

    kind: str
    settings: Settings
    parameters: tuple[weakref.ref[torch.Tensor], ...]

    def is_like(self, other: MadeAs) -> bool:
        """Of the same kind and settings, for the same parameters, which are still there."""
        return (
            self.kind == other.kind
            and self.settings == other.settings
            and len(self.parameters) == len(other.parameters)
            and all(
                one() is not None and one() is two()
                for one, two in zip(self.parameters, other.parameters, strict=True)
            )
        )


def made_as(optimizer: torch.optim.Optimizer) -> MadeAs | None:
    """None: it keeps no state, or was given one."""
    if not _keeps_state(optimizer) or checkpoints.was_given(optimizer):
        return None
    return _described(optimizer)


def _described(optimizer: torch.optim.Optimizer) -> MadeAs | None:
    settings = _settings(optimizer.param_groups)
    parameters = tuple(weakref.ref(p) for group in optimizer.param_groups for p in group["params"])
    return None if settings is None else MadeAs(type(optimizer).__name__, settings, parameters)


class _Given(NamedTuple):
    """An optimizer that was given a state. It may be gone by now."""

    optimizer: weakref.ref[torch.optim.Optimizer]
    made: MadeAs
    versions: tuple[int, ...]  # of its parameters, as it or a loading of weights left them

    @property
    def is_untouched(self) -> bool:
        """Whether its parameters are there, and nothing was written to them since."""
        return self.versions == _versions(self.made)


class _Loaded(NamedTuple):
    """A parameter that was given a value."""

    parameter: weakref.ref[torch.Tensor]
    version: int  # as it was left


def _versions(made: MadeAs) -> tuple[int, ...]:
    known = (parameter() for parameter in made.parameters)
    return tuple(version_of(parameter) for parameter in known if parameter is not None)


class Checkpoints:
    """What was saved and loaded in this process. One for all recordings."""

    # Calls are listened to since before the program's first line: none was missed.
    from_the_start = False

    def __init__(self) -> None:
        self._at_hand: dict[Settings, None] = {}  # of which states were read or taken
        self._trained: dict[tuple[str, Settings], None] = {}  # that drove a training before
        self._given: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()  # a state
        self._unused: list[_Given] = []  # of those: no step with that state was seen
        self._loaded: dict[int, _Loaded] = {}  # by ids of parameters

    def clear(self) -> None:
        """Forgets all."""
        self.__init__()  # type: ignore[misc]

    def state_seen(self, state: Any) -> None:
        """A state of an optimizer was read or taken."""
        if not isinstance(state, dict) or not state.get("state"):
            return
        settings = _settings(state.get("param_groups"))
        if settings is not None and len(self._at_hand) < _MOST_STATES:
            self._at_hand[settings] = None

    def file_loaded(self, value: Any) -> None:
        """`torch.load` returned `value`."""
        for state in _states_in(value):
            self.state_seen(state)

    def may_be_loaded(self, parameter: torch.Tensor) -> bool:
        """Whether a parameter's values may come from elsewhere: a file, a training before.

        One that was initialised in place had that done to it once or twice, and nothing else, and
        its values look as if they were drawn at random.
        """
        if self._was_loaded(parameter):
            return True
        is_young = self.from_the_start and 1 <= version_of(parameter) <= _MOST_INITIALISED
        return not (is_young and looks_drawn(parameter))

    def was_changed(self, parameter: torch.Tensor) -> bool:
        """Whether a parameter was given a value, or written to more often than to begin with."""
        return self._was_loaded(parameter) or version_of(parameter) > _MOST_INITIALISED

    def was_initialised(self, parameter: torch.Tensor) -> bool:
        """Whether a parameter was written to in place, as to begin with, and nothing else."""
        is_young = self.from_the_start and 1 <= version_of(parameter) <= _MOST_INITIALISED
        return is_young and not self._was_loaded(parameter)

    def _was_loaded(self, parameter: torch.Tensor) -> bool:
        known = self._loaded.get(id(parameter))
        return known is not None and known.parameter() is parameter

    def holds_loaded(self, parameter: torch.Tensor) -> bool:
        """Whether a parameter was given a value, and was not written to since."""
        was_loaded = self._was_loaded(parameter)
        return was_loaded and self._loaded[id(parameter)].version == version_of(parameter)

    def optimizer_loaded(self, optimizer: torch.optim.Optimizer, state: Any) -> None:
        """An optimizer was given a state."""
        if not isinstance(state, dict) or not state.get("state"):
            return
        if type(optimizer).__hash__ is None:
            return
        self._given.add(optimizer)
        made = _described(optimizer)
        if made is not None and any(map(_has_stepped, dict(state["state"]).values())):
            self._drop_used()
            if len(self._unused) < _MOST_STATES:
                given = _Given(weakref.ref(optimizer), made, _versions(made))
                self._unused.append(given)

    def _drop_used(self) -> None:
        self._unused = [known for known in self._unused if known.is_untouched]

    def model_loads(self) -> None:
        """A model is about to be given weights."""
        self._drop_used()

    def model_loaded(self, model: torch.nn.Module, result: Any) -> None:
        """A model was given weights."""
        self._unused = [known._replace(versions=_versions(known.made)) for known in self._unused]
        missing = set(getattr(result, "missing_keys", ()))
        alive = {k: known for k, known in self._loaded.items() if known.parameter() is not None}
        self._loaded = alive
        for name, parameter in named_in(model):
            if name not in missing:
                known = _Loaded(weakref.ref(parameter), version_of(parameter))
                self._loaded[id(parameter)] = known

    def steps(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer is about to make its first step. Some write where no version tells of it."""
        self._unused = [known for known in self._unused if known.optimizer() is not optimizer]

    def drives(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer makes steps from now on."""
        settings = _settings(optimizer.param_groups)
        if settings is not None and len(self._trained) < _MOST_STATES:
            self._trained[type(optimizer).__name__, settings] = None

    def what_was_lost(self, optimizer: torch.optim.Optimizer) -> int:
        """Of an optimizer before its first step.

        3: its parameters are as they were loaded, and it is made just like an optimizer for them
        that was given a state, since when nothing but loading wrote to them. 2: it begins anew on
        weights that were loaded, and a state of just such an optimizer was read or taken before.
        1: the same, but no such state was seen, an optimizer like it has trained in this process.
        0: none of it.
        """
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        if not parameters or optimizer in self._given or not _keeps_state(optimizer):
            return 0
        if any(_has_stepped(optimizer.state.get(parameter)) for parameter in parameters):
            return 0
        if not all(map(self._was_loaded, parameters)):
            return 0
        settings = _settings(optimizer.param_groups)
        if settings is None:
            return 0
        made = _described(optimizer)
        was_given = made is not None and any(
            known.is_untouched and made.is_like(known.made) for known in self._unused
        )
        if was_given and all(map(self.holds_loaded, parameters)):
            return 3
        if settings in self._at_hand or self._goes_on_with(optimizer, settings):
            return 2
        return int((type(optimizer).__name__, settings) in self._trained)

    def _goes_on_with(self, optimizer: torch.optim.Optimizer, settings: Settings) -> bool:
        """Whether its schedule, written out, goes on where that of a state left off."""
        return _is_set_by_hand(optimizer) and any(
            _are_near(settings, known) for known in self._at_hand
        )

    def was_given(self, optimizer: torch.optim.Optimizer) -> bool:
        """Whether an optimizer was given a state."""
        return optimizer in self._given


checkpoints = Checkpoints()


# A module, the name of a parameter in it, and that.
Named = tuple["torch.nn.Module | None", str, torch.Tensor]


class Fresh:
    """Whether some parameters of modules are as they were initialised.

    What was loaded is not, whatever it looks like: a training that was short, or a layer that it
    hardly changed, leaves nearly the distribution that was drawn.
    """

    def __init__(self, named: Sequence[Named]) -> None:
        self._measures: list[Measures | None] = [measure(*each) for each in named]
        self._are_loaded = [checkpoints.holds_loaded(parameter) for _, _, parameter in named]
        self.asked = [known.numbers for known in self._measures if known is not None]

    def told(self, values: list[torch.Tensor]) -> list[bool | None]:
        """`values`: what was asked for, in host memory. None: of that one it cannot be told."""
        numbers = iter(values)
        found: list[bool | None] = []
        for measures, is_loaded in zip(self._measures, self._are_loaded, strict=True):
            looks_so = None if measures is None else measures.says_drawn(next(numbers).tolist())
            found.append(False if looks_so and is_loaded else looks_so)
        return found


def are_fresh(named: Sequence[Named]) -> list[bool | None]:
    """Whether each is as it was initialised. None: that cannot be told. Waits for a device."""
    fresh = Fresh(named)
    return fresh.told(brought(fresh.asked))


def ask_fresh(
    later: Later, named: Sequence[Named], told: Callable[[list[bool | None]], None]
) -> None:
    """Tells the same when the step ends."""
    fresh = Fresh(named)
    later.ask("loop", fresh.asked, lambda values: told(fresh.told(values)))


def is_random_table(module: torch.nn.Module, parameter: torch.Tensor) -> bool:
    """Whether the rows of an embedding are random numbers, which nothing trained or loaded."""
    return not checkpoints.was_changed(parameter) and looks_random_table(module, parameter)


def listening_load(original: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.load`."""

    @functools.wraps(original)
    def load(*args: Any, **kwargs: Any) -> Any:
        value = original(*args, **kwargs)
        guarded("checkpoints", checkpoints.file_loaded, value)
        return value

    return load


def listening_model(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Module.load_state_dict`."""

    @functools.wraps(original)
    def load_state_dict(*args: Any, **kwargs: Any) -> Any:
        guarded("checkpoints", checkpoints.model_loads)
        result = original(*args, **kwargs)
        if args and isinstance(args[0], torch.nn.Module):
            guarded("checkpoints", checkpoints.model_loaded, args[0], result)
        return result

    return load_state_dict


def listening_state(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Optimizer.state_dict`."""

    @functools.wraps(original)
    def state_dict(*args: Any, **kwargs: Any) -> Any:
        state = original(*args, **kwargs)
        guarded("checkpoints", checkpoints.state_seen, state)
        return state

    return state_dict


def listening_optimizer(original: Callable[..., Any]) -> Callable[..., Any]:
    """`Optimizer.load_state_dict`."""

    @functools.wraps(original)
    def load_state_dict(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        state = args[1] if len(args) > 1 else kwargs.get("state_dict")
        if args and isinstance(args[0], torch.optim.Optimizer):
            guarded("checkpoints", checkpoints.optimizer_loaded, args[0], state)
        return result

    return load_state_dict
