"""What is changed in a training because its user asked for it: nothing by default.

Bad steps are left out here, before they change a parameter. The supervisor, who has the rules, asks
for the rest: a lower learning rate, parameters of before a fault, a checkpoint before a stop. All
but the last count against one limit, and each is told on standard error and in the run (an event
`correction`).
"""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import json
import math
import os
import pickle
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import torch

from traindbg._say import say
from traindbg.hooks.torch.base.device import (
    capturing_graph,
    own_operations,
    version_of,
    widest_of,
)
from traindbg.hooks.torch.base.guard import guarded
from traindbg.hooks.torch.base.host_memory import memory_left
from traindbg.hooks.torch.updates.gradients import scale_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from traindbg._core import HotPath, Session

    Arguments = tuple[tuple[Any, ...], dict[str, Any]]

# A step is bad whose gradients are larger than so many times the largest of the last ones.
_SPIKE = 10.0
_NORMS = 50
_NORMS_LEAST = 20  # before so many were seen, only values that are not finite are bad
_SNAPSHOTS = 4
# What a rule sees of a fault first is a few steps after what made it.
_MARGIN = 10
_NOT_KNOWN = (1 << 64) - 1  # in the place of the first step of a fault
_ROOM = 0.5  # the share of the memory left that a snapshot may take
_SHARED = "other processes train this model, too"


class Models(Protocol):
    """What is corrected (`base.watched`)."""

    def models(self) -> list[tuple[torch.nn.Module, str]]: ...
    def optimizers(self) -> list[torch.optim.Optimizer]: ...


class _Copy(NamedTuple):
    """What a tensor held, in host memory."""

    value: torch.Tensor
    device: torch.device  # where it was


class _Held(NamedTuple):
    """A parameter or buffer, by its name: some models put new buffers in the place of old ones."""

    model: weakref.ref[torch.nn.Module]
    name: str
    copy: _Copy


class _StateItem(NamedTuple):
    """What an optimizer knew of something."""

    key: Any  # of a parameter, which is held weakly, a reference
    number: int | None  # of a parameter, in what `state_dict` gives
    value: Any


class _Group(NamedTuple):
    numbers: list[int]  # of the parameters
    settings: dict[str, Any]


class _State(NamedTuple):
    """An optimizer. A roll-back leaves the settings of groups as the program has them."""

    optimizer: weakref.ref[torch.optim.Optimizer]
    items: list[_StateItem]
    groups: list[_Group]


class _Snapshot(NamedTuple):
    steps: int  # that were complete
    size: int  # bytes
    held: list[_Held]
    states: list[_State]


def _is_shared_out() -> bool:
    """Whether other processes train the same model: they would have to do the same."""
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_initialized():
        return False
    return int(distributed.get_world_size()) > 1


def _scaled(rate: Any, factor: float) -> Any:
    with own_operations():
        return rate * factor


def _on_host(value: Any) -> Any:
    """A copy of a piece of an optimizer's state, tensors in host memory."""
    if isinstance(value, torch.Tensor):
        return _Copy(value.detach().to("cpu", copy=True), value.device)
    if isinstance(value, dict):
        return {key: _on_host(item) for key, item in value.items()}
    if type(value) in (list, tuple, collections.deque):
        return type(value)(_on_host(item) for item in value)
    return copy.deepcopy(value)


def _put_back(held: Any, value: Any) -> Any:
    """`value` (a copy made by `_on_host`) for what is `held` now."""
    if isinstance(value, _Copy):
        if (
            isinstance(held, torch.Tensor)
            and held.shape == value.value.shape
            and held.dtype == value.value.dtype
        ):
            held.data.copy_(value.value)
            return held
        return value.value.to(value.device, copy=True)
    if isinstance(value, dict):
        now = held if isinstance(held, dict) else {}
        return {key: _put_back(now.get(key), item) for key, item in value.items()}
    if type(value) in (list, tuple, collections.deque):
        return type(value)(_put_back(None, item) for item in value)
    return copy.deepcopy(value)


def _tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers, each once."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def _bytes_of(value: Any) -> int:
    """Of all tensors in a piece of an optimizer's state."""
    if isinstance(value, torch.Tensor):
        return int(value.numel() * value.element_size())
    if isinstance(value, dict):
        return sum(_bytes_of(item) for item in value.values())
    if isinstance(value, (list, tuple, collections.deque)):
        return sum(_bytes_of(item) for item in value)
    return 0


def _numbers_of(optimizer: torch.optim.Optimizer) -> dict[int, int]:
    """By the ids of parameters, as `Optimizer.state_dict` numbers them."""
    numbers: dict[int, int] = {}
    start = 0
    for group in optimizer.param_groups:
        for number, parameter in enumerate(group["params"], start):
            numbers.setdefault(id(parameter), number)
        start += len(group["params"])
    return numbers


def _copied_setting(value: Any) -> Any:
    try:
        return _on_host(value)
    except Exception:  # an object of the program's that cannot be copied
        return value


def _groups_of(optimizer: torch.optim.Optimizer) -> list[_Group]:
    numbers = _numbers_of(optimizer)
    return [
        _Group(
            [numbers[id(p)] for p in group["params"]],
            {key: _copied_setting(item) for key, item in group.items() if key != "params"},
        )
        for group in optimizer.param_groups
    ]


def _state_of(optimizer: torch.optim.Optimizer) -> _State:
    """A copy."""
    numbers = _numbers_of(optimizer)
    items = [
        _StateItem(weakref.ref(key), numbers.get(id(key)), _on_host(item))
        if isinstance(key, torch.Tensor)
        else _StateItem(key, None, _on_host(item))
        for key, item in optimizer.state.items()
    ]
    return _State(weakref.ref(optimizer), items, _groups_of(optimizer))


def _plain(value: Any) -> Any:
    """A copy made by `_on_host`, as a program's own checkpoint would have it."""
    if isinstance(value, _Copy):
        return value.value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value) in (list, tuple, collections.deque):
        return type(value)(_plain(item) for item in value)
    return value


def _loadable(value: Any) -> Any:
    """With what `torch.load(weights_only=True)` refuses in the form of what it takes."""
    if isinstance(value, np.generic):
        return value.item()
    if type(value) is collections.OrderedDict:
        out = collections.OrderedDict((key, _loadable(item)) for key, item in value.items())
        out.__dict__.update(value.__dict__)  # versions of modules, for `load_state_dict`
        return out
    if isinstance(value, dict):
        return {key: _loadable(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_loadable(item) for item in value)
    return [_loadable(item) for item in value] if type(value) is collections.deque else value


def _place(tensor: torch.Tensor) -> tuple[Any, ...] | None:
    """Tells apart what lies in memory; nothing: it cannot be told."""
    if tensor.layout != torch.strided or tensor.is_meta or tensor.data_ptr() == 0:
        return None
    kind = (tensor.dtype, tensor.is_conj(), tensor.is_neg())
    return (tensor.device, tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), *kind)


def _is_copy_of(item: torch.Tensor, tensor: torch.Tensor) -> bool:
    """Whether it has all its values, where it lies and in its type."""
    if item.shape != tensor.shape or {item.layout, tensor.layout} != {torch.strided}:
        return False
    with own_operations():
        known = tensor.detach().to(item.device, item.dtype)
        return bool(((item == known) | (torch.isnan(item) & torch.isnan(known))).all())


class _NoCopyError(Exception):
    """Why there is no checkpoint of then."""


def _state_dict_of_model(
    model: torch.nn.Module, prefix: str, snapshot: _Snapshot
) -> dict[str, Any]:
    """As `model.state_dict()` was then, which may be the model's own and hand out copies.

    Raises `_NoCopyError` rather than have a tensor of now in there.
    """
    who = f"the model {prefix}" if prefix else "the model"
    copies = {held.name: held.copy.value for held in snapshot.held if held.model() is model}
    tensors = _tensors(model)
    if not copies and tensors:
        raise _NoCopyError(f"{who} was not watched then")
    gone = next((name for name in copies if name not in tensors), None)
    if gone is not None:
        raise _NoCopyError(f"{who} has other parameters than then: {gone} is gone")
    names = {id(tensor): name for name, tensor in tensors.items()}
    places = {_place(tensor.detach()): name for name, tensor in tensors.items()}
    places.pop(None, None)
    state = model.state_dict()
    out: dict[str, Any] = collections.OrderedDict()
    if hasattr(state, "_metadata"):
        out._metadata = state._metadata  # type: ignore[attr-defined]
    for key, item in state.items():
        out[key] = item
        if not isinstance(item, torch.Tensor) or item.numel() == 0:
            continue
        name = names.get(id(item)) or places.get(_place(item))
        if name is None and key in tensors and _is_copy_of(item.detach(), tensors[key]):
            name = key
        copied = None if name is None else copies.get(name)
        if copied is None or copied.shape != item.shape:
            raise _NoCopyError(f"there is no copy of {key} of {who}")
        out[key] = copied.to(item.dtype)
    return out


def _state_dict_of(optimizer: torch.optim.Optimizer, snapshot: _Snapshot) -> dict[str, Any]:
    """As `optimizer.state_dict()` was then; one that was not known then had no state."""
    now = optimizer.state_dict()
    numbers = _numbers_of(optimizer)
    expected = [[numbers[id(p)] for p in group["params"]] for group in optimizer.param_groups]
    if "state" not in now or [g.get("params") for g in now.get("param_groups", ())] != expected:
        raise _NoCopyError(f"{type(optimizer).__name__} has a form of its own for its state")
    for each in snapshot.states:
        if each.optimizer() is not optimizer:
            continue
        state = {
            item.key if item.number is None else item.number: _plain(item.value)
            for item in each.items
            if item.number is not None or not isinstance(item.key, weakref.ref)
        }
        groups = [{**_plain(g.settings), "params": list(g.numbers)} for g in each.groups]
        return {**now, "state": state, "param_groups": groups}
    return {**now, "state": {}}


def _is_capturing(model: torch.nn.Module) -> bool:
    """Whether operations become part of a CUDA graph now, and must not wait for the device."""
    first = next(model.parameters(), None)
    return first is not None and capturing_graph(first)


def _is_spread(model: torch.nn.Module) -> bool:
    """Whether parts of its parameters are in other processes (FSDP, tensor parallelism)."""
    if any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules()):
        return True
    return any(hasattr(parameter, "placements") for parameter in model.parameters())


class Corrections:
    """One per recording. The methods that the training calls raise nothing."""

    def __init__(self, session: Session, hot: HotPath, watched: Models) -> None:
        self._session = session
        self._hot = hot
        self._watched = watched
        self.factor = 1.0  # what optimizers are given of the learning rates that the program sets
        self.made = 0
        self._skips = False
        self._is_dry = False  # what would be done is told, and not done
        self._every = 0
        self._lr_factor = 0.5
        self._most = 10
        self._rates: list[tuple[dict[str, Any], Any, Any]] = []  # of groups: the program's and ours
        self._gradients: list[tuple[torch.nn.Parameter, torch.Tensor]] = []  # kept from a step
        self._norms: weakref.WeakKeyDictionary[torch.optim.Optimizer, collections.deque[float]] = (
            weakref.WeakKeyDictionary()
        )
        self._snapshots: collections.deque[_Snapshot] = collections.deque(maxlen=_SNAPSHOTS)
        # Of the last snapshot: a scheduler sets the next step's rate after it, mostly.
        self._unsettled: list[_State] = []
        self._looked_at = -1  # the steps at which a snapshot was considered last
        self._refused: set[str] = set()  # actions that were refused, and told so
        # Gradients of before a roll-back, by the ids of their parameters, with their versions.
        self._old: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}

    def follow(self, words: Mapping[str, Any]) -> None:
        """Takes on the part `corrections` of a plan."""
        self._skips = bool(words.get("skip_bad_steps", False))
        self._is_dry = bool(words.get("dry_run", False))
        # Nobody asks for a roll-back then.
        self._every = 0 if self._is_dry else int(words.get("snapshot_every", 0))
        self._lr_factor = float(words.get("lr_factor", 0.5))
        self._most = int(words.get("most", 10))

    @property
    def is_wanted(self) -> bool:
        """Whether optimizer steps have to be looked at."""
        return self._skips or self._every > 0 or self.factor != 1.0

    # Around an optimizer's step.

    def scale(self, optimizer: torch.optim.Optimizer) -> None:
        """Before a step and before anybody looks at its settings."""
        if self._rates or self._gradients:
            guarded("restoring", self._restore)  # of a step that raised
        if self._unsettled:
            guarded("snapshots", self._settle, optimizer)
        if self.factor != 1.0:
            guarded("learning rate", self._scale, optimizer)

    def judge(self, optimizer: torch.optim.Optimizer, arguments: Arguments) -> Arguments:
        """Before a step, last. The arguments for it: a closure computes the gradients first."""
        if self._every > 0 and self._looked_at < 0:
            guarded("snapshots", self._take_snapshot, optimizer)
        args, kwargs = arguments
        if len(args) > 1 and callable(args[1]):  # the first is the optimizer
            return (args[0], self._judging(args[1], optimizer), *args[2:]), kwargs
        if callable(kwargs.get("closure")):
            return args, {**kwargs, "closure": self._judging(kwargs["closure"], optimizer)}
        if self._old:
            guarded("old gradients", self._leave_out_old, optimizer)
        if self._skips:
            guarded("bad steps", self._judge, optimizer)
        return arguments

    def stepped(self) -> None:
        """After a step, before anybody looks."""
        if self._rates or self._gradients:
            guarded("restoring", self._restore)

    def step_ended(self) -> None:
        """After a step of the training's."""
        steps = self._hot.steps
        if self._every > 0 and steps % self._every == 0 and steps != self._looked_at:
            guarded("snapshots", self._take_snapshot, None)

    def close(self) -> None:
        """Everything is the program's again; the learning rate, too."""
        guarded("restoring", self._restore)
        self.factor = 1.0
        self._skips = False
        self._every = 0
        self._snapshots.clear()
        self._unsettled.clear()
        self._norms.clear()
        self._old.clear()

    def _owns(self, optimizer: torch.optim.Optimizer) -> bool:
        ours = {id(p) for model, _ in self._watched.models() for p in model.parameters()}
        return any(id(p) in ours for group in optimizer.param_groups for p in group["params"])

    def _scale(self, optimizer: torch.optim.Optimizer) -> None:
        if optimizer not in self._watched.optimizers():
            return
        for group in optimizer.param_groups:
            rate = group.get("lr")
            if isinstance(rate, (int, float, torch.Tensor)):
                ours = _scaled(rate, self.factor)
                self._rates.append((group, rate, ours))
                group["lr"] = ours

    def _restore(self) -> None:
        rates, self._rates = self._rates, []
        for group, rate, ours in rates:
            if group.get("lr") is ours:  # or somebody has set another meanwhile
                group["lr"] = rate
        gradients, self._gradients = self._gradients, []
        for parameter, gradient in gradients:
            if parameter.grad is None:
                parameter.grad = gradient

    def _judging(
        self, closure: Callable[..., Any], optimizer: torch.optim.Optimizer
    ) -> Callable[..., Any]:
        is_first = True

        @functools.wraps(closure)
        def computed(*args: Any, **kwargs: Any) -> Any:
            nonlocal is_first
            try:
                value = closure(*args, **kwargs)
            except BaseException:
                guarded("restoring", self._restore)  # the step ends here, and nobody is told
                raise
            if is_first:
                is_first = False
                if self._skips:
                    guarded("bad steps", self._judge, optimizer)
            return value

        return computed

    def _judge(self, optimizer: torch.optim.Optimizer) -> None:
        """Takes the gradients away from a step that would do damage."""
        if "skip_step" in self._refused or not self._owns(optimizer):
            return
        if _is_shared_out():
            self._refuse("skip_step", _SHARED)
            return
        trained = [p for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        gradients = [p.grad.coalesce().values() if p.grad.is_sparse else p.grad for p in trained]
        if not gradients or any(capturing_graph(gradient) for gradient in gradients):
            return
        found = getattr(optimizer, "found_inf", None)
        if isinstance(found, torch.Tensor) and bool(found.any()):
            return  # a fused optimizer, told by its GradScaler, leaves the step out itself
        norm = _norm(gradients)
        scale = scale_of(optimizer)
        if scale is not None:
            norm /= float(scale)
        known = self._norms.setdefault(optimizer, collections.deque(maxlen=_NORMS))
        is_spike = len(known) >= _NORMS_LEAST and norm > _SPIKE * max(known)
        if math.isfinite(norm) and not is_spike:
            known.append(norm)
            return
        why = f"norm of the gradients {norm:.3g}"
        if is_spike and math.isfinite(norm):
            why += f", at most {max(known):.3g} in the last {len(known)} steps"
        if not self._may("skip_step"):
            return
        step = f"step {self._hot.steps}"
        if self._is_dry:
            text = f"dry run: {step} would have been left out: {why}"
            self._tell("skip_step", text, norm=norm, dry_run=True)
            return
        self._take_away(trained)
        self._tell("skip_step", f"{step} was left out: {why}", norm=norm)

    def _take_away(self, trained: list[torch.nn.Parameter]) -> None:
        self._gradients = [(p, p.grad) for p in trained if p.grad is not None]
        for parameter in trained:
            parameter.grad = None

    def _leave_out_old(self, optimizer: torch.optim.Optimizer) -> None:
        """After a roll-back another optimizer steps, with gradients of the parameters before."""
        old = []
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                known, gradient = self._old.pop(id(parameter), None), parameter.grad
                if known is None or gradient is None:
                    continue
                if version_of(gradient) == known[1] and known[0]() is gradient:
                    old.append(parameter)
        self._take_away(old)

    # What the supervisor asks for.

    def asked(self) -> None:
        """Makes the corrections that were asked for since the last call."""
        lower, back, bad_since = self._session.take_corrections()
        if back:
            self._roll_back(bad_since)
        elif lower:
            self._lower("lower_lr")

    def _lower(self, action: str) -> None:
        if not self._may(action):
            return
        before, self.factor = self.factor, self.factor * self._lr_factor
        self._tell(
            action,
            f"from step {self._hot.steps} on the learning rate is {self.factor:.4g} times "
            f"what the program sets (before: {before:.4g})",
            factor=self.factor,
        )

    def _roll_back(self, bad_since: int) -> None:
        if not self._may("roll_back"):
            return
        snapshot = self._snapshot_of_before(bad_since)
        why = f"back to {_before(bad_since)}"
        if snapshot is None:
            self._refuse("roll_back", f"{why}: {self._why_none(bad_since)}")
            return
        if any(_is_capturing(model) for model, _ in self._watched.models()):
            self._refuse("roll_back", f"{why}: a CUDA graph is being captured")
            return
        with own_operations():
            problem = self._load(snapshot)
        if problem:
            self._refuse("roll_back", f"{why}: {problem}")
            return
        while self._snapshots and self._snapshots[-1] is not snapshot:
            self._snapshots.pop()
        self._norms.clear()
        gradients = [
            (id(parameter), parameter.grad)
            for model, _ in self._watched.models()
            for parameter in model.parameters()
        ]
        self._old = {key: (weakref.ref(g), version_of(g)) for key, g in gradients if g is not None}
        self.factor *= self._lr_factor
        self._tell(
            "roll_back",
            f"at step {self._hot.steps} parameters and optimizer are those of after "
            f"{snapshot.steps} steps again, and the learning rate {self.factor:.4g} times what the "
            "program sets",
            to=snapshot.steps,
            factor=self.factor,
        )

    def checkpoint(self, bad_since: int) -> None:
        """Writes checkpoints into the run: what is there now, and what was before the fault.

        `bad_since`: the first step of the fault. Whatever happens: the training ends afterwards.
        """
        if self._session.worker != 0:
            return  # of a model that all ranks have; the first one writes it
        try:
            if any(_is_spread(model) for model, _ in self._watched.models()):
                spread = "the model's parameters are spread over processes"
                self._refuse("checkpoint", spread, "checkpoint")
                return
        except Exception as error:
            self._refuse("checkpoint", f"{type(error).__name__}: {error}", "checkpoint")
            return
        # The more valuable one first, and neither falls with the other.
        good = f"checkpoint of {_before(bad_since)}"
        write_good = functools.partial(self._write_good_checkpoint, bad_since, good)
        for action, what, write in (
            ("good_checkpoint", good, write_good),
            ("checkpoint", "checkpoint", self._write_checkpoint),
        ):
            try:
                write()
            except _NoCopyError as problem:
                self._refuse(action, str(problem), what)
            except Exception as error:
                self._refuse(action, f"{type(error).__name__}: {error}", what)

    def _write_checkpoint(self) -> None:
        steps = self._hot.steps
        models = {
            prefix.rstrip("."): model.state_dict() for model, prefix in self._watched.models()
        }
        optimizers = [optimizer.state_dict() for optimizer in self._watched.optimizers()]
        text = f"checkpoint after {steps} steps"
        self._write("checkpoint", text, f"step-{steps:08}.pt", steps, models, optimizers)

    def _write_good_checkpoint(self, bad_since: int, what: str) -> None:
        """What a snapshot holds of before the fault. The models are left as they are."""
        if bad_since == 0:
            return  # a fault that was there from the start
        snapshot = self._snapshot_of_before(bad_since)
        if snapshot is None:
            self._refuse("good_checkpoint", self._why_none(bad_since), what)
            return
        models = {
            prefix.rstrip("."): _state_dict_of_model(model, prefix.rstrip("."), snapshot)
            for model, prefix in self._watched.models()
        }
        optimizers = [
            _state_dict_of(optimizer, snapshot) for optimizer in self._watched.optimizers()
        ]
        steps = snapshot.steps
        text = f"{what}, after {steps} steps"
        name = f"good-{steps:08}.pt"
        self._write("good_checkpoint", text, name, steps, models, optimizers, to=steps)

    def _write(
        self,
        action: str,
        text: str,
        name: str,
        steps: int,
        models: dict[str, Any],
        optimizers: list[dict[str, Any]],
        **facts: Any,
    ) -> None:
        directory = Path(self._session.run_directory) / "checkpoints"
        content = {
            "schema_version": 1,
            "step": steps,
            "models": models,
            "optimizers": optimizers,
            "lr_factor": self.factor,  # the learning rates in there are the program's
        }
        _save(_loadable(content), directory, name)
        path = directory / name
        tensors = [v for state in models.values() for v in state.values()]
        floats = [t for t in tensors if isinstance(t, torch.Tensor) and t.is_floating_point()]
        is_finite = math.isfinite(_norm(floats))
        text += f": {path}"
        if not is_finite:
            text += "; it holds values that are not finite"
        if not _loads_safely(path):
            text += "; it loads with weights_only=False only"
        self._report(action, text, path=str(path), is_finite=is_finite, **facts)

    # Snapshots.

    def _take_snapshot(self, about_to_step: torch.optim.Optimizer | None) -> None:
        """`about_to_step`: an optimizer that may not be known yet."""
        models = [model for model, _ in self._watched.models()]
        if _is_shared_out() or any(_is_capturing(model) for model in models):
            return
        steps = self._looked_at = self._hot.steps
        optimizers = self._watched.optimizers()
        is_known = about_to_step is None or any(o is about_to_step for o in optimizers)
        if about_to_step is not None and not is_known and self._owns(about_to_step):
            optimizers = [*optimizers, about_to_step]
        with own_operations():
            tensors = [(model, name, t) for model in models for name, t in _tensors(model).items()]
            if not math.isfinite(_norm([t for _, _, t in tensors if t.is_floating_point()])):
                return  # nothing to go back to
            size = sum(_bytes_of(t) for _, _, t in tensors)
            size += sum(_bytes_of(optimizer.state) for optimizer in optimizers)
            if not self._make_room(size):
                return
            held = [_Held(weakref.ref(model), name, _on_host(t)) for model, name, t in tensors]
            states = [_state_of(optimizer) for optimizer in optimizers]
        self._snapshots.append(_Snapshot(steps, size, held, states))
        self._unsettled = [each for each in states if each.optimizer() is not about_to_step]

    def _settle(self, optimizer: torch.optim.Optimizer) -> None:
        """Before the first step after a snapshot: the settings are those of that step."""
        for state in self._unsettled:
            if state.optimizer() is optimizer:
                with own_operations():
                    groups = _groups_of(optimizer)
                if [g.numbers for g in groups] == [g.numbers for g in state.groups]:
                    state.groups[:] = groups
        self._unsettled = [s for s in self._unsettled if s.optimizer() not in (optimizer, None)]

    def _make_room(self, size: int) -> bool:
        """Whether there is memory for so many bytes more; that of the oldest, if need be."""
        left = memory_left()
        room = math.inf if left is None else left * _ROOM
        is_full = len(self._snapshots) == _SNAPSHOTS
        if size <= room and not is_full:
            return True
        oldest = self._snapshots[0].size if len(self._snapshots) > 1 else 0
        replaces = oldest > 0 and size <= room + oldest
        if not (replaces and is_full):
            does = "fewer are kept" if replaces else "it is not taken"
            text = (
                f"a snapshot takes {_mebibytes(size)}, and {_mebibytes(left or 0)} of memory are "
            )
            say(f"{text}left: {does} (--snapshot-every)", once=f"snapshots: {does}")
        if replaces:
            self._snapshots.popleft()  # before the new one is made: never one more than are kept
        return replaces

    def _snapshot_of_before(self, bad_since: int) -> _Snapshot | None:
        """The newest, some steps before the fault where there is one."""
        if bad_since == _NOT_KNOWN:
            return None
        good = [s for s in self._snapshots if s.steps + _MARGIN <= bad_since]
        good = good or [s for s in self._snapshots if s.steps <= bad_since]
        return good[-1] if good else None

    def _why_none(self, bad_since: int) -> str:
        """Why there is no snapshot of before that step."""
        if bad_since == _NOT_KNOWN:
            return (
                "it is not known with which step of the training it began: it was seen outside "
                "of them, as in an evaluation"
            )
        if self._snapshots:
            return f"the snapshots are of steps {[each.steps for each in self._snapshots]}"
        if _is_shared_out():
            return f"{_SHARED}, and no snapshots are kept"
        if self._looked_at >= 0:
            return "no snapshot could be taken"
        return "there is no snapshot (--snapshot-every)"

    def _load(self, snapshot: _Snapshot) -> str:
        """Puts a snapshot back; says why not, and has changed nothing then.

        By `.data`: a graph that the program is about to go back through stays valid.
        """
        pairs = []
        known: dict[int, dict[str, torch.Tensor]] = {}
        for each in snapshot.held:
            model = each.model()
            if model is None:
                return "a model of then is gone"
            tensor = known.setdefault(id(model), _tensors(model)).get(each.name)
            if tensor is None or tensor.shape != each.copy.value.shape:
                return f"the model has other parameters than then: {each.name}"
            pairs.append((tensor, each.copy.value))
        for tensor, value in pairs:
            tensor.data.copy_(value)
        for state in snapshot.states:
            optimizer = state.optimizer()
            if optimizer is None:
                continue
            seen = set()
            for key, _, item in state.items:
                where = key() if isinstance(key, weakref.ref) else key
                if where is not None:
                    seen.add(id(where))
                    optimizer.state[where] = _put_back(optimizer.state.get(where), item)
            for group in optimizer.param_groups:  # what it learnt of others since
                for parameter in group["params"]:
                    if id(parameter) not in seen:
                        optimizer.state.pop(parameter, None)
        return ""

    # What became of it.

    def _may(self, action: str) -> bool:
        if _is_shared_out():
            self._refuse(action, _SHARED)
            return False
        if self.made >= self._most:
            made = f"{self.made} corrections were made, which is the limit (--max-corrections)"
            self._refuse(action, made)
            return False
        return True

    def _refuse(self, action: str, why: str, what: str = "correction") -> None:
        """Told once for each action."""
        if action not in self._refused:
            self._refused.add(action)
            self._report(action, f"no {what}: {why}", refused=True)

    def _tell(self, action: str, text: str, **facts: Any) -> None:
        self.made += 1
        self._report(action, f"{text} (correction {self.made} of {self._most})", **facts)

    def _report(self, action: str, text: str, **facts: Any) -> None:
        say(text, once=text)
        known = {k: v for k, v in facts.items() if not isinstance(v, float) or math.isfinite(v)}
        step = self._hot.steps
        words = {"action": action, "step": step, "number": self.made, "text": text, **known}
        self._session.event("correction", json.dumps(words))


def _norm(tensors: list[torch.Tensor]) -> float:
    """The l2 norm of all elements; not finite where one of them, or a sum, is not."""
    with own_operations():
        given = [t.detach() for t in tensors if t.numel() > 0]
        short = [t for t in given if t.element_size() < 4]  # whose norm may overflow in their type
        wide = [t for t in given if t.element_size() >= 4]
        norms = list(torch._foreach_norm(wide)) if wide else []
        norms += [torch.linalg.vector_norm(t, dtype=torch.float32) for t in short]
        total = 0.0
        for norm in _on_one_device(norms):
            total = math.hypot(total, float(norm))
        return total


def _on_one_device(norms: list[torch.Tensor]) -> list[torch.Tensor]:
    """One number for each device, so that each is waited for once."""
    by_device: dict[torch.device, list[torch.Tensor]] = {}
    for norm in norms:
        by_device.setdefault(norm.device, []).append(norm.to(widest_of(norm)))
    return [torch.linalg.vector_norm(torch.stack(each)) for each in by_device.values()]


def _before(bad_since: int) -> str:
    return "before the fault" if bad_since == _NOT_KNOWN else f"before step {bad_since}"


def _mebibytes(size: int) -> str:
    return f"{size / (1 << 20):.0f} MiB"


def _loads_safely(path: Path) -> bool:
    """Whether nothing but tensors and plain values is in there. Of tensors no byte is read."""
    try:
        torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except pickle.UnpicklingError:
        return False
    return True


def _save(content: dict[str, Any], directory: Path, name: str) -> None:
    """Whole or not at all, and nowhere else: a link in the place of the directory is refused."""
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    temporary = f"{name}.{os.getpid()}.tmp"
    into = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=into)  # of a process that had this number
        with open(os.open(temporary, flags, 0o600, dir_fd=into), "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=into, dst_dir_fd=into)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=into)
        os.close(into)
