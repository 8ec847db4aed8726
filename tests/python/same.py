"""Trains one mode of training with traindbg or without, in a process of its own, and compares.

A mode (`modes_*.py`) is a function that trains for a few steps as its name says. It is given a
`Training`, by which it asks to be watched and says what it computed. Without traindbg `watch` does
nothing. What a training leaves is told bit for bit: losses and the graphs that they come from,
weights, gradients, what optimizers hold, the states of all generators of random numbers, hooks, how
many tensors are still alive, and what of PyTorch is no longer as it was.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import multiprocessing
import pickle
import random
import sys
import threading
import traceback
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

import traindbg as td
from traindbg import _core
from traindbg.hooks.torch.data import rows as row_facts

SECONDS = 120
COLLECTIONS = _core.builtin_collections()
EVERYTHING: dict[str, Any] = {
    "collect": COLLECTIONS,
    "raw": COLLECTIONS,
    "histograms": COLLECTIONS,
    "capture": [{"collection": each, "what": ["channels", "digest"]} for each in COLLECTIONS],
    "every": 1,
    "micro_batches": "all",
}
# Between the steps that are looked at lie ordinary ones: hooks come and go.
SELDOM: dict[str, Any] = {"collect": COLLECTIONS, "every": 3}
USUAL = ("weights", "gradients", "losses", "inputs", "outputs")


@dataclass
class Mode:
    """A row of the table: what is trained, and what must have been recorded of it."""

    name: str
    train: Callable[[Training], None]
    steps: int | None  # recorded by each worker; None: in its turns, not the same each time
    holds: tuple[str, ...]  # collections that are not empty
    said: tuple[str, ...]  # begins of what is `not_captured`, and no more than that
    ranks: int
    is_slow: bool  # watched in one way only
    options: dict[str, Any]  # of `watch`, beside those of all modes


MODES: dict[str, Mode] = {}


def mode(
    *,
    steps: int | None = 4,
    holds: Iterable[str] = USUAL,
    said: Iterable[str] = (),
    ranks: int = 1,
    is_slow: bool = False,
    **options: Any,
) -> Callable[[Callable[[Training], None]], Callable[[Training], None]]:
    """Adds a function to the table under its name."""

    def add(train: Callable[[Training], None]) -> Callable[[Training], None]:
        name = train.__name__
        assert name not in MODES, name
        MODES[name] = Mode(name, train, steps, tuple(holds), tuple(said), ranks, is_slow, options)
        return train

    return add


def digest_of(*values: Any) -> str:
    """Of tensors their bits and how they lie in memory, and of whatever holds them."""
    text = hashlib.sha256()
    for value in values:
        _digest(text, value)
    return text.hexdigest()[:16]


def _digest(text: Any, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        text.update(f"{type(value).__name__} {value.dtype} {tuple(value.shape)}".encode())
        value = value.detach()
        if hasattr(value, "_local_tensor"):
            value = value._local_tensor
        if value.is_sparse:
            for part in (value._indices(), value._values()):
                _digest(text, part)
        elif value.is_meta:
            text.update(b"meta")
        elif value.numel():
            text.update(repr(value.stride()).encode())
            value = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
            value = value.as_subclass(torch.Tensor).contiguous().reshape(-1)
            text.update(value.view(torch.uint8).numpy().tobytes())
    elif isinstance(value, dict):
        for key, each in value.items():
            text.update(str(key).encode())
            _digest(text, each)
    elif isinstance(value, (list, tuple)):
        text.update(str(len(value)).encode())
        for each in value:
            _digest(text, each)
    elif isinstance(value, torch.nn.Module):
        _digest(text, dict(value.state_dict()))
        _digest(text, dict(value.named_buffers()))
        text.update(repr([module.training for module in value.modules()]).encode())
    elif isinstance(value, torch.optim.Optimizer):
        _digest(text, value.state_dict())
    elif callable(value):
        text.update(getattr(value, "__name__", type(value).__name__).encode())
    else:
        text.update(repr(value).encode())


def graph_of(tensor: torch.Tensor) -> list[str]:
    """The nodes of the graph that a loss comes from, in order."""
    names, waiting, known = [], [tensor.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in known:
            known.add(node)
            names.append(node.name())
            waiting.extend(following for following, _ in node.next_functions)
    return names


def hooks_of(model: torch.nn.Module) -> list[tuple[str, int]]:
    """What is attached to a model's modules and parameters."""
    found = []
    for name, owner in [*model.named_modules(), *model.named_parameters()]:
        for attribute in dir(type(owner)) if isinstance(owner, torch.Tensor) else vars(owner):
            if "hooks" in attribute:
                hooks = getattr(owner, attribute)
                if isinstance(hooks, dict):
                    found.append((f"{name}.{attribute}", len(hooks)))
    return found


def _places() -> Iterator[tuple[str, Any]]:
    """Modules and classes of PyTorch and of the process in which something may be replaced."""
    for name, module in list(sys.modules.items()):
        is_listened_to = name.split(".")[0] in ("torch", "threading", "sys", "numpy", "random")
        if is_listened_to and isinstance(module, types.ModuleType):
            yield name, module
    for base in (torch.nn.Module, torch.optim.Optimizer, torch.amp.GradScaler):
        waiting: list[type] = [base]
        while waiting:
            owner = waiting.pop()
            waiting.extend(owner.__subclasses__())
            yield f"{owner.__module__}.{owner.__qualname__}", owner
    schedules = torch.optim.lr_scheduler
    for owner in (torch.utils.data.DataLoader, schedules.LRScheduler, torch.Tensor):
        yield owner.__qualname__, owner


def process_now() -> dict[str, Any]:
    """All that traindbg could have replaced in this process, by its place."""
    found: dict[str, Any] = {}
    for place, owner in _places():
        for name, value in list(vars(owner).items()):
            if name.startswith(("_traindbg_", "__warningregistry__")):
                continue  # kept for good: see `steps.patches._listened`
            kind = type(value)  # some warn when they are asked for their class
            if kind is types.FunctionType:
                found[f"{place}.{name}"] = (id(value), id(value.__code__))
            elif issubclass(kind, dict) and "hooks" in name:
                found[f"{place}.{name}"] = len(value)
    found["modes of functions"] = torch._C._len_torch_function_stack()
    found["grad"] = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    found["threads"] = threading.active_count()
    found["saved tensors"] = torch._C._autograd._saved_tensors_hooks_is_enabled()
    found["dtype"] = torch.get_default_dtype(), torch.get_default_device()
    found["deterministic"] = torch.are_deterministic_algorithms_enabled()
    found["displayhook"] = sys.displayhook, sys.excepthook, sys.gettrace(), sys.getprofile()
    return found


class Training:
    """What a mode is given."""

    def __init__(self, run_dir: Path, settings: dict[str, Any] | None, rank: int) -> None:
        self.run_dir = run_dir
        self.folder = run_dir.parent
        self.rank = rank
        self.is_watched = settings is not None
        self._settings = settings or {}
        self._watchers: list[td.Watcher] = []
        self._models: list[torch.nn.Module] = []
        self._optimizers: list[torch.optim.Optimizer] = []
        self._losses: list[str] = []
        self._graphs: list[list[str]] = []
        self._seen: list[weakref.ref[torch.Tensor]] = []
        self._alive: list[int] = []
        self._left: dict[str, str] = {}

    def watch(
        self, model: torch.nn.Module, *optimizers: torch.optim.Optimizer, **options: Any
    ) -> td.Watcher | None:
        """Watches, and tells of the model and the optimizers what they are in the end."""
        self.belongs(model, *optimizers)
        if not self.is_watched:
            return None
        first = optimizers[0] if optimizers else None
        given = {"run_dir": self.run_dir, "supervise": False, **self._settings, **options}
        if any(watcher.is_active for watcher in self._watchers):
            given = options  # it joins
        watcher = td.watch(model, first, **given)
        self._watchers.append(watcher)
        return watcher

    def belongs(self, model: torch.nn.Module, *optimizers: torch.optim.Optimizer) -> None:
        """A model and optimizers whose state is part of what is compared."""
        if not any(model is known for known in self._models):
            self._models.append(model)
        known = {id(optimizer) for optimizer in self._optimizers}
        self._optimizers.extend(each for each in optimizers if id(each) not in known)

    def loss(self, loss: torch.Tensor, *tensors: Any) -> torch.Tensor:
        """A loss, and tensors that nothing may keep alive beyond the step."""
        self._losses.append(digest_of(loss))
        self._graphs.append(graph_of(loss))
        held = (each for each in (loss, *tensors) if isinstance(each, torch.Tensor))
        self._seen.extend(weakref.ref(each) for each in held)
        return loss

    def stepped(self) -> None:
        """A step is over, and the mode holds none of its tensors."""
        self._alive.append(sum(seen() is not None for seen in self._seen))

    def left(self, **things: Any) -> None:
        """Whatever else the training computed."""
        for name, value in things.items():
            self._left[f"{name} {len(self._left)}"] = digest_of(value)

    def fit(
        self,
        model: Callable[..., Any],
        optimizer: torch.optim.Optimizer,
        batches: Iterable[tuple[Any, Any]],
        loss_of: Callable[[Any, Any], torch.Tensor] = F.cross_entropy,
        before_step: Callable[[], Any] = lambda: None,
    ) -> None:
        """The ordinary loop."""
        batch: Any
        for batch in batches:
            optimizer.zero_grad()
            output = model(batch[0])
            loss = self.loss(loss_of(output, batch[1]), output, *batch)
            loss.backward()
            before_step()
            optimizer.step()
            del batch, output, loss
            self.stepped()

    def _finish(self) -> dict[str, Any]:
        parameters = [list(model.named_parameters()) for model in self._models]
        return {
            "losses": self._losses,
            "graphs": self._graphs,
            "alive after each step": self._alive,
            "weights": [digest_of(model) for model in self._models],
            "gradients": [
                {name: digest_of(parameter.grad) for name, parameter in each} for each in parameters
            ],
            "optimizers": [digest_of(optimizer) for optimizer in self._optimizers],
            "hooks": [hooks_of(model) for model in self._models],
            "keys": [sorted(vars(part)) for model in self._models for part in model.modules()],
            "random numbers": [
                digest_of(torch.get_rng_state()),
                digest_of(*map(str, np.random.get_state(legacy=True))),
                digest_of(random.getstate()),
            ],
            "left": self._left,
        }

    def detach(self) -> None:
        for watcher in self._watchers:
            watcher.detach()


def _tensors_alive() -> int:
    gc.collect()
    ours = {id(factors) for factors in row_facts._factors.values()}  # a constant of each device
    return sum(
        issubclass(type(each), torch.Tensor) and id(each) not in ours for each in gc.get_objects()
    )


def _train(row: Mode, run_dir: Path, settings: dict[str, Any] | None, rank: int) -> dict[str, Any]:
    training = Training(run_dir, None if settings is None else {**settings, **row.options}, rank)
    random.seed(1)
    np.random.seed(1)
    torch.manual_seed(1)
    before = process_now()
    row.train(training)
    told = training._finish()
    training.detach()
    after = process_now()
    changed = {key for key in before if key in after and before[key] != after[key]}
    told["changed in the process"] = sorted(changed)
    told["random numbers when detached"] = digest_of(torch.get_rng_state())
    models = [weakref.ref(model) for model in training._models]
    optimizers = [weakref.ref(optimizer) for optimizer in training._optimizers]
    del training
    told["tensors alive"] = _tensors_alive()
    told["alive models and optimizers"] = [
        sum(each() is not None for each in group) for group in (models, optimizers)
    ]
    return told


def _child(name: str, run_dir: Path, settings: dict[str, Any] | None, rank: int) -> None:
    import table_of_modes  # noqa: F401  (fills MODES)

    torch.set_num_threads(1)  # in a child of a fork, those of the parent are gone
    gc.freeze()  # what was there before need not be looked at again
    told: dict[str, Any]
    try:
        told = _train(MODES[name], run_dir, settings, rank)
    except BaseException:
        told = {"raised": traceback.format_exc()}
    (run_dir.parent / f"{run_dir.name}.told{rank}").write_bytes(pickle.dumps(told))


@functools.cache
def _processes() -> Any:
    context = multiprocessing.get_context("forkserver")
    slow = ["torch._dynamo", "torch.distributed.fsdp", "torch.distributed.optim"]
    context.set_forkserver_preload(["torch", *slow, "pytest", "traindbg.hooks.torch.watching"])
    return context


@dataclass
class Outcome:
    """What a mode left, by rank."""

    run_dir: Path
    told: list[dict[str, Any]] = field(default_factory=list)

    def what_differs(self, other: Outcome) -> dict[str, tuple[Any, Any]]:
        """From what another one left."""
        found: dict[str, tuple[Any, Any]] = {}
        for rank, (mine, theirs) in enumerate(zip(self.told, other.told, strict=True)):
            for key in {*mine, *theirs}:
                if mine.get(key) != theirs.get(key):
                    found[f"{key} of rank {rank}"] = (mine.get(key), theirs.get(key))
        return found


def run(name: str, run_dir: Path, settings: dict[str, Any] | None) -> Outcome:
    """Trains a mode in processes of its own, one for each rank."""
    outcome = Outcome(run_dir)
    children = [
        _processes().Process(target=_child, args=(name, run_dir, settings, rank))
        for rank in range(MODES[name].ranks)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(SECONDS)
    for rank, child in enumerate(children):
        if child.is_alive():
            child.kill()
            child.join()
        path = run_dir.parent / f"{run_dir.name}.told{rank}"
        told = {"raised": f"exit code {child.exitcode}, and nothing was told"}
        outcome.told.append(pickle.loads(path.read_bytes()) if path.is_file() else told)
    return outcome
