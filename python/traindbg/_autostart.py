"""Watches models by itself: the zero-code way, used by `traindbg run`.

The first optimizer that is made over parameters of a live `torch.nn.Module` is followed to the
outermost module that holds them, and that one is watched. An optimizer whose model is not found is
tried again when it makes its first step. Where no optimizer is made at all, the weights that change
after backward passes tell what is trained (`torch_by_hand_search`). Trainers of Lightning and of
transformers are given traindbg's own callbacks, and `Accelerator.log` is listened to, for the
metrics that they know.
"""

from __future__ import annotations

import functools
import os
import weakref
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_pre_hook

from traindbg import _core
from traindbg.hooks import torch as hook
from traindbg.hooks import torch_patches as patches
from traindbg.hooks import torch_recording as recordings
from traindbg.hooks.torch_by_hand_search import Search
from traindbg.hooks.torch_guard import guarded
from traindbg.hooks.torch_leaves import Leaves, names_of
from traindbg.hooks.torch_resume import checkpoints
from traindbg.hooks.torch_sources import sources

if TYPE_CHECKING:
    from collections.abc import Iterable

_seen: weakref.WeakSet[Any] = weakref.WeakSet()
# Of optimizers no model of which was found: how many steps until the next search, and after it.
_searches: weakref.WeakKeyDictionary[Any, tuple[int, int]] = weakref.WeakKeyDictionary()
_installed = False
_leaves: list[Leaves] = []  # watched in the place of models


def on_trained_by_hand(
    leaves: list[torch.Tensor], losses: list[torch.Tensor], root: torch.Tensor | None
) -> None:
    """Watches what is trained without an optimizer.

    `losses` are those of the steps up to now, `root` that of the one under way.
    """
    are_parameters = all(isinstance(leaf, torch.nn.Parameter) for leaf in leaves)
    is_heard = recordings.current is not None
    model = find_root(leaves) if are_parameters else None
    if model is None:
        model = Leaves(leaves, names_of(leaves))
        _leaves.append(model)
    watcher = hook.watch(model, run_dir=os.environ["TRAINDBG_RUN_DIR"], supervise=False)
    if isinstance(model, Leaves):
        watcher._observer = None  # nobody calls it
    if recordings.current is not None:
        recordings.current.by_hand.search = _search.pass_begins
        recordings.current.steps_before(losses, root if is_heard else None)


_search: Search


def find_root(parameters: Iterable[torch.Tensor]) -> torch.nn.Module | None:
    """The outermost live module that holds most of `parameters`; None when there is none.

    Of several that hold as many, the one that holds the first of them: the garbage collector names
    modules in any order.
    """
    wanted = {id(parameter): number for number, parameter in enumerate(parameters)}
    live: list[torch.nn.Module] = _core.instances_of(torch.nn.Module)
    modules = [module for module in live if "_modules" in module.__dict__]
    inner = {id(child) for module in modules for child in module._modules.values()}
    best: torch.nn.Module | None = None
    most = (0, 0)  # of the best: how many, and less the number of the first of them
    for module in modules:
        if id(module) in inner:
            continue
        held = [wanted[id(p)] for p in module.parameters() if id(p) in wanted]
        if held and (len(held), -min(held)) > most:
            best, most = module, (len(held), -min(held))
    return best


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
    if hook.is_watched(parameters):
        _seen.add(optimizer)
        if recordings.current is not None:  # a second training of the same model, perhaps
            recordings.current.drivers.expect_other()
        return
    root = find_root(parameters)
    if root is None:
        return
    if recordings.current is not None and recordings.current.retire_for(root):
        _seen.clear()  # should one that trained before step again, its model is watched again
    _searches.pop(optimizer, None)
    _seen.add(optimizer)
    run_dir = os.environ["TRAINDBG_RUN_DIR"]
    hook.watch(root, optimizer, run_dir=run_dir, supervise=False).is_found = True


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


def install() -> None:
    """Installs the hooks for good. Call once, after torch was imported."""
    global _installed, _search
    if _installed:
        return
    _installed = True
    # Held for the life of the process, so that `from torch.nn.functional import cross_entropy` in
    # the script gets a function that can be listened to.
    patches.acquire()
    checkpoints.from_the_start = True
    _search = Search(on_trained_by_hand)
    original = torch.optim.Optimizer.__init__

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        guarded("sources", sources.made, self)
        guarded("autostart", _search.end)
        guarded("autostart", on_optimizer, self)

    torch.optim.Optimizer.__init__ = init

    latest: weakref.ref[Any] = weakref.ref(original)  # nearly always the one that steps again

    def before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if latest() is not optimizer:
            guarded("autostart", look_at, optimizer)

    def look_at(optimizer: Any) -> None:
        nonlocal latest
        on_optimizer(optimizer)
        if type(optimizer).__hash__ is not None and optimizer in _seen:
            latest = weakref.ref(optimizer)

    register_optimizer_step_pre_hook(before_step)
