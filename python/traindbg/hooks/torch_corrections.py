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
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import torch

from traindbg._say import say
from traindbg.hooks.torch_device import capturing_graph, own_operations
from traindbg.hooks.torch_guard import guarded

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


class Host(Protocol):
    """What is corrected (the recording)."""

    session: Session
    hot: HotPath

    def models(self) -> list[tuple[torch.nn.Module, str]]: ...
    def optimizers(self) -> list[torch.optim.Optimizer]: ...


class _Held(NamedTuple):
    """A tensor, and what it held."""

    tensor: weakref.ref[torch.Tensor]
    value: torch.Tensor


class _State(NamedTuple):
    """What an optimizer knew of a parameter."""

    optimizer: weakref.ref[torch.optim.Optimizer]
    parameter: weakref.ref[torch.Tensor]
    values: dict[Any, Any]


class _Snapshot(NamedTuple):
    steps: int  # that were complete
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
        return value.detach().to("cpu", copy=True)
    return copy.deepcopy(value)


def _put_back(held: Any, value: Any) -> Any:
    """`value` (a copy made by `_on_host`) for the state that is `held` now."""
    if not isinstance(value, torch.Tensor):
        return copy.deepcopy(value)
    if isinstance(held, torch.Tensor) and held.shape == value.shape and held.dtype == value.dtype:
        return held.copy_(value)
    device = held.device if isinstance(held, torch.Tensor) else value.device
    return value.to(device, copy=True)


class Corrections:
    """One per recording. The methods that the training calls raise nothing."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.factor = 1.0  # what optimizers are given of the learning rates that the program sets
        self.made = 0
        self._skips = False
        self._every = 0
        self._lr_factor = 0.5
        self._most = 10
        self._rates: list[tuple[dict[str, Any], Any, Any]] = []  # of groups: the program's and ours
        self._gradients: list[tuple[torch.nn.Parameter, torch.Tensor]] = []  # kept from a step
        self._norms: weakref.WeakKeyDictionary[torch.optim.Optimizer, collections.deque[float]] = (
            weakref.WeakKeyDictionary()
        )
        self._snapshots: collections.deque[_Snapshot] = collections.deque(maxlen=_SNAPSHOTS)
        self._looked_at = -1  # the steps at which a snapshot was considered last
        self._is_exhausted = False

    def follow(self, words: Mapping[str, Any]) -> None:
        """Takes on the part `corrections` of a plan."""
        self._skips = bool(words.get("skip_bad_steps", False))
        self._every = int(words.get("snapshot_every", 0))
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
        if self.factor != 1.0:
            guarded("corrections", self._scale, optimizer)

    def judge(self, optimizer: torch.optim.Optimizer, arguments: Arguments) -> Arguments:
        """Before a step, last. The arguments for it: a closure computes the gradients first."""
        if self._every > 0 and self._looked_at < 0:
            guarded("corrections", self._take_snapshot)
        if not self._skips:
            return arguments
        args, kwargs = arguments
        if len(args) > 1 and callable(args[1]):  # the first is the optimizer
            return (args[0], self._judging(args[1], optimizer), *args[2:]), kwargs
        if callable(kwargs.get("closure")):
            return args, {**kwargs, "closure": self._judging(kwargs["closure"], optimizer)}
        guarded("corrections", self._judge, optimizer)
        return arguments

    def stepped(self) -> None:
        """After a step, before anybody looks."""
        if self._rates or self._gradients:
            guarded("restoring", self._restore)

    def step_ended(self) -> None:
        """After a step of the training's."""
        steps = self._host.hot.steps
        if self._every > 0 and steps % self._every == 0 and steps != self._looked_at:
            guarded("corrections", self._take_snapshot)

    def close(self) -> None:
        """Everything is the program's again; the learning rate, too."""
        guarded("restoring", self._restore)
        self.factor = 1.0
        self._skips = False
        self._every = 0
        self._snapshots.clear()
        self._norms.clear()

    def _owns(self, optimizer: torch.optim.Optimizer) -> bool:
        ours = {id(p) for model, _ in self._host.models() for p in model.parameters()}
        return any(id(p) in ours for group in optimizer.param_groups for p in group["params"])

    def _scale(self, optimizer: torch.optim.Optimizer) -> None:
        if optimizer not in self._host.optimizers():
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
            value = closure(*args, **kwargs)
            if is_first:
                is_first = False
                guarded("corrections", self._judge, optimizer)
            return value

        return computed

    def _judge(self, optimizer: torch.optim.Optimizer) -> None:
        """Takes the gradients away from a step that would do damage."""
        if self._is_exhausted or not self._owns(optimizer):
            return
        trained = [p for g in optimizer.param_groups for p in g["params"] if p.grad is not None]
        gradients = [p.grad.coalesce().values() if p.grad.is_sparse else p.grad for p in trained]
        if not gradients or any(capturing_graph(gradient) for gradient in gradients):
            return
        norm = _norm(gradients)
        known = self._norms.setdefault(optimizer, collections.deque(maxlen=_NORMS))
        is_spike = len(known) >= _NORMS_LEAST and norm > _SPIKE * max(known)
        if math.isfinite(norm) and not is_spike:
            known.append(norm)
            return
        why = f"norm of the gradients {norm:.3g}"
        if is_spike and math.isfinite(norm):
            why += f", at most {max(known):.3g} in the last {len(known)} steps"
        if not self._may("skip_step", why):
            return
        self._gradients = [(p, p.grad) for p in trained if p.grad is not None]
        for parameter in trained:
            parameter.grad = None
        self._tell("skip_step", f"step {self._host.hot.steps} was left out: {why}", norm=norm)

    # What the supervisor asks for.

    def asked(self) -> None:
        """Makes the corrections that were asked for since the last call."""
        lower, back, bad_since = self._host.session.take_corrections()
        if back:
            self._roll_back(bad_since)
        elif lower:
            self._lower("lower_lr")

    def _lower(self, action: str) -> None:
        if not self._may(action, "the learning rate was to be lowered"):
            return
        before, self.factor = self.factor, self.factor * self._lr_factor
        self._tell(
            action,
            f"from step {self._host.hot.steps} on the learning rate is {self.factor:.4g} times "
            f"what the program sets (before: {before:.4g})",
            factor=self.factor,
        )

    def _roll_back(self, bad_since: int) -> None:
        why = f"back to before step {bad_since}"
        if not self._may("roll_back", why):
            return
        good = [s for s in self._snapshots if s.steps + _MARGIN <= bad_since]
        good = good or [s for s in self._snapshots if s.steps <= bad_since]
        if not good:
            kept = [snapshot.steps for snapshot in self._snapshots]
            self._refuse(
                "roll_back",
                f"{why}: the snapshots are of steps {kept}"
                if kept
                else f"{why}: no snapshot is kept (--snapshot-every)",
            )
            return
        snapshot = good[-1]
        with own_operations():
            problem = self._load(snapshot)
        if problem:
            self._refuse("roll_back", problem)
            return
        while self._snapshots and self._snapshots[-1] is not snapshot:
            self._snapshots.pop()
        self._norms.clear()
        self.factor *= self._lr_factor
        self._tell(
            "roll_back",
            f"at step {self._host.hot.steps} parameters and optimizer are those of after "
            f"{snapshot.steps} steps again, and the learning rate {self.factor:.4g} times what the "
            "program sets",
            to=snapshot.steps,
            factor=self.factor,
        )

    def checkpoint(self) -> None:
        """Writes a checkpoint into the run."""
        if self._host.session.worker != 0:
            return  # of a model that all ranks have; the first one writes it
        models = {prefix.rstrip("."): model.state_dict() for model, prefix in self._host.models()}
        tensors = [
            v for state in models.values() for v in state.values() if isinstance(v, torch.Tensor)
        ]
        if any(hasattr(tensor, "placements") for tensor in tensors):
            self._refuse("checkpoint", "the model's parameters are spread over processes")
            return
        steps = self._host.hot.steps
        directory = Path(self._host.session.run_directory) / "checkpoints"
        path = directory / f"step-{steps:08}.pt"
        content = {
            "schema_version": 1,
            "step": steps,
            "models": models,
            "optimizers": [optimizer.state_dict() for optimizer in self._host.optimizers()],
            "lr_factor": self.factor,  # the learning rates in there are the program's
        }
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
            _save(content, path)
        except (OSError, RuntimeError) as error:  # RuntimeError: how torch.save says "disk full"
            self._refuse("checkpoint", f"{path}: {error}")
            return
        floats = [t for t in tensors if t.is_floating_point() and t.numel() > 0]
        is_finite = not floats or math.isfinite(_norm(floats))
        text = f"checkpoint after {steps} steps: {path}"
        if not is_finite:
            text += "; it holds values that are not finite"
        self._report("checkpoint", text, path=str(path), is_finite=is_finite)

    # Snapshots.

    def _take_snapshot(self) -> None:
        steps = self._looked_at = self._host.hot.steps
        if _is_shared_out():
            return
        tensors = {
            id(t): t
            for model, _ in self._host.models()
            for t in (*model.parameters(), *model.buffers())
        }
        with own_operations():
            floats = [t for t in tensors.values() if t.is_floating_point() and t.numel() > 0]
            if floats and not math.isfinite(_norm(floats)):
                return  # nothing to go back to
            held = [_Held(weakref.ref(t), _on_host(t)) for t in tensors.values()]
            states = [
                _State(
                    weakref.ref(optimizer),
                    weakref.ref(parameter),
                    {key: _on_host(value) for key, value in optimizer.state[parameter].items()}
                    if parameter in optimizer.state
                    else {},
                )
                for optimizer in self._host.optimizers()
                for group in optimizer.param_groups
                for parameter in group["params"]
            ]
        self._snapshots.append(_Snapshot(steps, held, states))

    def _load(self, snapshot: _Snapshot) -> str:
        """Puts a snapshot back; says why not, and has changed nothing then."""
        pairs = [(each.tensor(), each.value) for each in snapshot.held]
        if any(tensor is None or tensor.shape != value.shape for tensor, value in pairs):
            return "the model has other parameters than when the snapshots were taken"
        for tensor, value in pairs:
            if tensor is not None:
                tensor.detach().copy_(value)
        seen = set()
        for state in snapshot.states:
            optimizer, parameter = state.optimizer(), state.parameter()
            if optimizer is None or parameter is None:
                continue
            seen.add((id(optimizer), id(parameter)))
            held = optimizer.state.get(parameter, {})
            values = {key: _put_back(held.get(key), value) for key, value in state.values.items()}
            if values:
                optimizer.state[parameter] = values
            else:
                optimizer.state.pop(parameter, None)
        for optimizer in self._host.optimizers():  # what it learnt of parameters since
            for parameter in list(optimizer.state):
                if (id(optimizer), id(parameter)) not in seen:
                    optimizer.state.pop(parameter, None)
        return ""

    # What became of it.

    def _may(self, action: str, what: str) -> bool:
        if _is_shared_out():
            self._refuse(action, f"{what}: other processes train this model, too")
            return False
        if self.made >= self._most:
            if not self._is_exhausted:
                self._is_exhausted = True
                self._refuse(
                    action,
                    f"{what}: {self.made} corrections were made, which is the limit "
                    "(--max-corrections)",
                )
            return False
        self.made += 1
        return True

    def _refuse(self, action: str, why: str) -> None:
        self._report(action, f"no correction: {why}", refused=True)

    def _tell(self, action: str, text: str, **facts: Any) -> None:
        self._report(action, f"{text} (correction {self.made} of {self._most})", **facts)

    def _report(self, action: str, text: str, **facts: Any) -> None:
        say(text, once=text)
        known = {k: v for k, v in facts.items() if not isinstance(v, float) or math.isfinite(v)}
        step = self._host.hot.steps
        words = {"action": action, "step": step, "number": self.made, "text": text, **known}
        self._host.session.event("correction", json.dumps(words))


def _norm(tensors: list[torch.Tensor]) -> float:
    """The l2 norm of all elements; not finite where one of them, or a sum, is not."""
    with own_operations():
        given = [t.detach() for t in tensors if t.numel() > 0]
        short = [t for t in given if t.element_size() < 4]  # whose norm may overflow in their type
        norms = list(torch._foreach_norm([t for t in given if t.element_size() >= 4]))
        norms += [torch.linalg.vector_norm(t, dtype=torch.float32) for t in short]
        total = 0.0
        for norm in _on_one_device(norms):
            total = math.hypot(total, float(norm))
        return total


def _on_one_device(norms: list[torch.Tensor]) -> list[torch.Tensor]:
    """One number for each device, so that each is waited for once."""
    by_device: dict[torch.device, list[torch.Tensor]] = {}
    for norm in norms:
        by_device.setdefault(norm.device, []).append(
            norm.double() if norm.device.type != "mps" else norm.float()
        )
    return [torch.linalg.vector_norm(torch.stack(each)) for each in by_device.values()]


def _save(content: dict[str, Any], path: Path) -> None:
    """Whole or not at all."""
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        with open(temporary, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
