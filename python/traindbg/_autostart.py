"""Watches models by itself: the zero-code way, used by `traindbg run`.

The first optimizer that is made over parameters of a live `torch.nn.Module` is followed to the
outermost module that holds them, and that one is watched; where one optimizer trains several, the
others as its companions. An optimizer whose model is not found is
tried again when it makes its first step, and followed to its tensors themselves where a backward
pass leads to them (`steps.optimized_search`). Where no optimizer is made at all, the weights that
change after backward passes tell what is trained (`steps.by_hand_search`). Trainers of Lightning
and of transformers are given traindbg's own callbacks, and `Accelerator.log` is listened to, for
the metrics that they know.
"""

from __future__ import annotations

import atexit
import functools
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from traindbg import _core
from traindbg._say import say
from traindbg.hooks.torch import watching as hook
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.leaves import (
    Leaves,
    Optimized,
    OptimizedInputs,
    are_models_beside,
    may_be_trained,
    names_of,
    optimized_by,
)
from traindbg.hooks.torch.base.sources import sources
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.steps.by_hand_search import ByHandSearch
from traindbg.hooks.torch.steps.optimized_search import OptimizedSearch
from traindbg.hooks.torch.steps.pass_search import PassListener
from traindbg.hooks.torch.updates.resume import checkpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_seen: weakref.WeakSet[Any] = weakref.WeakSet()
# Of optimizers no model of which was found: how many steps until the next search, and after it.
_searches: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
_installed = False
_MOST_ROOTS = 16  # of one optimizer: each is asked at every call of a module that is looked at
_leaves: list[Leaves] = []  # watched in the place of models
_in_search = threading.Lock()
_optimized: list[Optimized] = []  # of these, what optimizers train
_MOST_DENIED = 64  # steps between searches, from when one was not made for want of time
_MOST_FRUITLESS = 8  # searches for what is trained beside a watched model: each is of all objects


class _Fruitless:
    searches = 0


class _Unfound:
    """What is said at the end where nothing was recorded."""

    stepped = ""  # the type of an optimizer that did, and whose model was not found
    has_recorded = False


class _SearchTime:
    """Of looking for models among all objects, which takes tens of milliseconds each time.

    A program may make thousands of optimizers. There is a second for all searches, and a second
    for those that find nothing; what they take of these comes back by a tenth, and by a fiftieth,
    of the time that goes by. Who is not looked for is asked again at its next step.
    """

    MOST = 1.0  # seconds
    SHARE, FRUITLESS = 0.1, 0.02

    def __init__(self) -> None:
        self._at = time.perf_counter()
        self._all = self._fruitless = self.MOST

    def is_left(self) -> bool:
        """Whether one may begin."""
        now = time.perf_counter()
        gone, self._at = now - self._at, now
        self._all = min(self.MOST, self._all + self.SHARE * gone)
        self._fruitless = min(self.MOST, self._fruitless + self.FRUITLESS * gone)
        return self._all > 0 and self._fruitless > 0

    def of(self, search: Callable[[], list[torch.nn.Module]]) -> list[torch.nn.Module]:
        """What it finds."""
        began = time.perf_counter()
        found: list[torch.nn.Module] = []
        try:
            found = search()
        finally:
            took = time.perf_counter() - began
            self._all -= took
            self._fruitless -= 0 if found else took
        return found


_search_time = _SearchTime()


def on_trained_by_hand(
    leaves: list[torch.Tensor], losses: list[torch.Tensor], root: torch.Tensor | None
) -> None:
    """Watches what is trained without an optimizer.

    `losses` are those of the steps up to now, `root` that of the one under way.
    """
    are_parameters = all(isinstance(leaf, torch.nn.Parameter) for leaf in leaves)
    is_heard = recordings.current is not None
    models = find_roots(leaves) if are_parameters else []
    if not models:
        models = [Leaves(leaves, names_of(leaves))]
        _leaves.extend(models)
    watcher = _watch(models, None)
    if isinstance(models[0], Leaves):
        watcher._observer = None  # nobody calls it
    if recordings.current is not None:
        recordings.current.by_hand.search = _search.pass_begins
        recordings.current.steps_before(losses, root if is_heard else None)


def _owned_without_model() -> set[int]:
    """The ids of what optimizers train whose models were not found."""
    return {
        id(p) for known in list(_searches) for group in known.param_groups for p in group["params"]
    }


def _names_if_time(leaves: Sequence[torch.Tensor]) -> list[str]:
    if not _search_time.is_left():
        return [f"tensor{number}" for number, _ in enumerate(leaves)]
    names: list[str] = []

    def look() -> list[torch.nn.Module]:
        names.extend(names_of(leaves))
        return []

    _search_time.of(look)
    return names


def on_optimized(optimizers: list[torch.optim.Optimizer]) -> None:
    """Watches what these train, of which a backward pass has begun that leads to some of it."""
    if recordings.current is not None or not _search_time.is_left():
        return
    if not _in_search.acquire(blocking=False):  # in another thread
        return
    try:
        _watch_optimized(optimizers)
    finally:
        _in_search.release()


def _watch_optimized(optimizers: list[torch.optim.Optimizer]) -> None:
    trained = [tensor for optimizer in optimizers for tensor in optimized_by(optimizer)]
    if _may_be_in_modules(trained) and _search_time.of(lambda: find_roots(trained)):
        for optimizer in optimizers:  # their model was made after them
            on_optimizer(optimizer)
        return
    kind = OptimizedInputs if are_models_beside() else Optimized
    model = kind(optimizers, _names_if_time)
    _leaves.append(model)
    _optimized.append(model)
    _seen.update(optimizers)
    watcher = _watch([model], optimizers[0])
    watcher.is_found = True
    watcher._observer = None  # nobody calls it
    if recordings.current is not None:
        recordings.current.by_hand.close()  # the pass may be of a closure, of a step under way


def _may_be_in_modules(tensors: Iterable[torch.Tensor]) -> bool:
    return any(isinstance(tensor, torch.nn.Parameter) for tensor in tensors)


_search: ByHandSearch
_optimized_search: OptimizedSearch


class Root(NamedTuple):
    """An outermost module, and which of the parameters that are looked for it holds."""

    module: torch.nn.Module
    held: frozenset[int]  # by their numbers

    @property
    def rank(self) -> tuple[int, int]:
        """How many it holds; of as many, which holds the first: modules are named in any order."""
        return len(self.held), -min(self.held)


def find_roots(parameters: Iterable[torch.Tensor]) -> list[torch.nn.Module]:
    """The outermost live modules that hold `parameters`, that which holds most of them in front.

    Those behind it hold what none before them does.
    """
    wanted = {id(parameter): number for number, parameter in enumerate(parameters)}
    live: list[torch.nn.Module] = _core.instances_of(torch.nn.Module)
    modules = [module for module in live if "_modules" in module.__dict__]
    inner = {id(child) for module in modules for child in module._modules.values()}
    roots = []
    for module in modules:
        if id(module) not in inner:
            held = frozenset(wanted[id(p)] for p in module.parameters() if id(p) in wanted)
            if held:
                roots.append(Root(module, held))
    found: list[torch.nn.Module] = []
    known: set[int] = set()
    for root in sorted(roots, key=lambda root: root.rank, reverse=True):
        if not root.held <= known:
            found.append(root.module)
            known |= root.held
    return found


def _is_to_be_searched(optimizer: Any) -> bool:
    """Whether to look for its model now: each time that none is found, twice as many steps go by.

    A search goes through all objects. What holds a lone parameter, a multiplier say, is no module.
    """
    left, then = _searches.get(optimizer, (0, 0))
    _searches[optimizer] = (left - 1, then) if left > 0 else (then, max(1, 2 * then))
    return left == 0


def on_optimizer(optimizer: Any) -> None:
    """Watches the model of an optimizer that nobody watches yet."""
    if type(optimizer).__hash__ is None or optimizer in _seen or not _is_to_be_searched(optimizer):
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if not any(map(may_be_trained, parameters)):
        return
    if hook.is_watched(parameters):
        _seen.add(optimizer)
        _add_to_optimized(parameters, optimizer)
        if recordings.current is not None:  # a second training of the same model, perhaps
            recordings.current.drivers.expect_other()
            guarded("autostart", _watch_others, recordings.current, parameters, optimizer)
        return
    roots: list[torch.nn.Module] = []
    if _may_be_in_modules(parameters):
        if not _search_time.is_left():
            _searches[optimizer] = (0, min(_searches[optimizer][1], _MOST_DENIED))
            return
        roots = _search_time.of(lambda: find_roots(parameters))
    recording = recordings.current
    if not roots:
        if recording is None:
            _optimized_search.add(optimizer)
        elif sum(tensor.numel() for tensor in optimized_by(optimizer)) > 1:
            what = f"what an optimizer of type {type(optimizer).__name__} trains"
            recording.unseen.say("optimized", what, "it is in no module that was found")
        return
    if recording is not None and recording.retire_for(roots[0], _is_without_module(recording)):
        _seen.clear()  # should one that trained before step again, its model is watched again
        _optimized.clear()
    _searches.pop(optimizer, None)
    _seen.add(optimizer)
    _watch(roots, optimizer).is_found = True


def _add_to_optimized(parameters: list[torch.Tensor], optimizer: Any) -> None:
    """An optimizer that is made anew for what another one trained, in each epoch, say."""
    trained = {id(parameter) for parameter in parameters}
    for model in _optimized:
        if any(id(parameter) in trained for parameter in model.parameters()):
            model.add(optimizer)


def _follow_optimized() -> None:
    if recordings.current is not None:
        recordings.current.follow_optimized()


def _is_without_module(recording: recordings.Recording) -> bool:
    """Whether what is watched is no module: something else than the model that is found now."""
    watchers = recording.watched.watchers
    return bool(watchers) and all(
        each.is_found and isinstance(each.model, Optimized) for each in watchers
    )


def _watch(roots: Sequence[torch.nn.Module], optimizer: Any) -> hook.Watcher:
    """Watches the first one, and the others as its companions."""
    _Unfound.has_recorded = True
    _optimized_search.end()
    if optimizer is not None:
        _search.end()
    watcher = hook.watch(
        roots[0], optimizer, run_dir=os.environ["TRAINDBG_RUN_DIR"], supervise=False
    )
    recording = recordings.current
    if len(roots) > 1 and recording is not None and watcher.is_active:
        guarded("autostart", _add_companions, recording, watcher, roots[1:])
    return watcher


def _add_companions(
    recording: recordings.Recording, leader: hook.Watcher, models: list[torch.nn.Module]
) -> None:
    places = _MOST_ROOTS - 1 - len(recording.watched.companions_of(leader))
    if len(models) > places:
        what = f"{len(models) - places} of the models that are trained together"
        recording.unseen.say("companions", what, f"at most {_MOST_ROOTS} are")
    recording.add_companions(leader, models[: max(places, 0)])


def _watch_others(
    recording: recordings.Recording, parameters: list[torch.Tensor], optimizer: Any
) -> None:
    """Of an optimizer of which a part is watched that was found by itself: watches the rest."""
    watched = {id(p) for model, _ in recording.watched.models() for p in model.parameters()}
    rest = [parameter for parameter in parameters if id(parameter) not in watched]
    if not rest or _Fruitless.searches >= _MOST_FRUITLESS:
        return
    roots = find_roots(rest)
    if not roots:  # no module holds it, and a loop may make such an optimizer again and again
        _Fruitless.searches += 1
        return
    holders = recording.watched.holders_of({id(parameter) for parameter in parameters})
    leaders = [watcher for watcher in holders if watcher.leader is None]
    if not leaders:  # those that it shares with another one are companions of others
        _watch(roots, optimizer).is_found = True
    elif leaders[0].is_found:
        _add_companions(recording, leaders[0], roots)


def imported(module: Any) -> None:
    """Does what is to be done after a module was imported; see `_bootstrap/sitecustomize.py`."""
    if module.__name__ == "torch":
        install()
    elif module.__name__ == "transformers.trainer":
        guarded("frameworks", _attach_to_transformers, module)
    elif module.__name__ == "accelerate.accelerator":
        guarded("frameworks", _attach_to_accelerate, module)
    else:
        guarded("frameworks", _attach_to_lightning, module)


def _attach_to_transformers(module: Any) -> None:
    from traindbg.integrations.transformers import Callback

    class TraindbgCallback(Callback):
        """Of a class of its own: Trainer warns of two of the same, and the user may give one."""

    module.DEFAULT_CALLBACKS.append(TraindbgCallback)


def _attach_to_lightning(module: Any) -> None:
    from traindbg.integrations.lightning import Callback

    original = module.Trainer.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        guarded("frameworks", lambda: self.callbacks.insert(0, Callback()))

    module.Trainer.__init__ = init


def _attach_to_accelerate(module: Any) -> None:
    from traindbg.integrations.accelerate import log_numbers

    original = module.Accelerator.log

    @functools.wraps(original)
    def log(self: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, values, *args, **kwargs)
        guarded("metrics", log_numbers, values)
        return result

    module.Accelerator.log = log


def _at_exit() -> None:
    if _Unfound.stepped and not _Unfound.has_recorded:
        say(
            f"an optimizer of type {_Unfound.stepped} stepped, but what it trains is in no module "
            "that was found, and no backward pass leads to two numbers of it or more; "
            "traindbg.watch(model) in the script attaches by hand"
        )


def install() -> None:
    """Installs the hooks for good. Call once, after torch was imported."""
    global _installed, _search, _optimized_search
    if _installed:
        return
    _installed = True
    # Held for the life of the process, so that `from torch.nn.functional import cross_entropy` in
    # the script gets a function that can be listened to.
    patches.acquire()
    checkpoints.from_the_start = True
    atexit.register(_at_exit)
    passes = PassListener()
    _optimized_search = OptimizedSearch(passes, on_optimized)
    _search = ByHandSearch(passes, on_trained_by_hand, _owned_without_model)
    original = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        guarded("sources", sources.made, self)
        if recordings.current is not None:
            guarded("autostart", _search.end)
        guarded("autostart", on_optimizer, self)

    torch.optim.Optimizer.__init__ = init

    latest: weakref.ref[Any] = weakref.ref(original)  # nearly always the one that steps again

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if _optimized:
            guarded("autostart", _follow_optimized)
        if latest() is not optimizer:
            guarded("autostart", look_at, optimizer)

    def look_at(optimizer: Any) -> None:
        nonlocal latest
        on_optimizer(optimizer)
        if recordings.current is None:
            _Unfound.stepped = type(optimizer).__name__
        else:
            _Unfound.has_recorded = True
        if type(optimizer).__hash__ is not None and optimizer in _seen:
            latest = weakref.ref(optimizer)

    register_optimizer_step_pre_hook(before_step)
