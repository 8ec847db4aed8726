"""The checkpoints that a training writes before it is stopped.

What is asked for through the control page is written there as docs/format/control.md says. Whole
trainings that go on from one: tests/e2e/test_corrections.py.
"""

from __future__ import annotations

import collections
import copy
import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.testing._internal.distributed.fake_pg import FakeStore

import traindbg as td
from traindbg.errors import TrainingStopped
from traindbg.hooks.torch.base.host_memory import memory_left

if TYPE_CHECKING:
    from collections.abc import Callable

STOP, CHECKPOINT, BAD_SINCE = 64, 84, 88
NOT_KNOWN = (1 << 64) - 1
STEPS, ASKED_AT, FAULT = 200, 23, 20  # one of several processes goes on for a while
INPUTS = torch.arange(64.0).reshape(16, 4).sin()
TARGETS = INPUTS[:, :2].cos()


def ask(run: Path, bad_since: int) -> None:
    control = os.open(run / "control", os.O_RDWR)
    try:
        os.pwrite(control, struct.pack("<Q", bad_since), BAD_SINCE)
        os.pwrite(control, struct.pack("<I", 1), CHECKPOINT)
        os.pwrite(control, struct.pack("<I", 1), STOP)
    finally:
        os.close(control)


def told(run: Path) -> dict[str, dict[str, Any]]:
    """By what was done."""
    events = [each["data"] for each in td.Run(run).events if each["kind"] == "correction"]
    return {each["action"]: each for each in events}


class Training(NamedTuple):
    models: list[nn.Module]
    optimizers: list[torch.optim.Optimizer]
    loss: Callable[[], torch.Tensor]
    after: Callable[[int], None] = lambda _: None
    is_closure: bool = False


def stop(
    training: Training, run: Path, *, bad_since: int = FAULT, every: int = 2
) -> list[tuple[list[Any], list[Any]]]:
    """Trains until it is stopped. What there was before each step: of models, of optimizers."""
    known = []
    models, optimizers = training.models, training.optimizers

    def computed() -> torch.Tensor:
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss = training.loss()
        loss.backward()
        return loss

    def train() -> None:
        for step in range(STEPS):
            of_models = [copy.deepcopy(nn.Module.state_dict(model)) for model in models]
            known.append((of_models, [copy.deepcopy(o.state_dict()) for o in optimizers]))
            if step == ASKED_AT:
                ask(run, bad_since)
            if not training.is_closure:
                computed()
            for optimizer in optimizers:
                optimizer.step(*([computed] if training.is_closure else []))
            training.after(step)

    corrections = {"snapshot_every": every}
    with td.watch(models[0], run_dir=run, rules=[], supervise=False, corrections=corrections):
        for model in models[1:]:
            td.watch(model)
        with pytest.raises(TrainingStopped):
            train()
    return known


def same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, torch.Tensor):
        return ours.dtype == theirs.dtype and torch.equal(ours, theirs)
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, (list, tuple, collections.deque)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return bool(ours == theirs)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.norm = nn.BatchNorm1d(4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("cache", torch.zeros(1), persistent=False)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.norm(self.embedding(numbers)))
        return result


class HandsOutCopies(nn.Linear):
    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {n: t.detach().cpu().clone() for n, t in super().state_dict(*args, **kwargs).items()}


class TakesNothing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.inner(x)
        return result

    def state_dict(self) -> dict[str, Any]:  # type: ignore[override]
        return {f"inner.{n}": p.detach().clone() for n, p in self.inner.named_parameters()}


def fitted(
    model: nn.Module, optimizer: torch.optim.Optimizer | None = None, **more: Any
) -> Training:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return Training(
        [model], [optimizer], lambda: functional.mse_loss(model(INPUTS), TARGETS), **more
    )


def tied() -> Training:
    model, numbers = Tied(), torch.arange(10)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    return Training([model], [optimizer], lambda: functional.cross_entropy(model(numbers), numbers))


def complex_amsgrad() -> Training:
    model = nn.Linear(4, 4, dtype=torch.complex64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)
    return Training([model], [optimizer], lambda: model(INPUTS.to(torch.complex64)).abs().mean())


def lbfgs() -> Training:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    return fitted(model, optimizer, is_closure=True)


def one_cycle() -> Training:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=50)
    return fitted(model, optimizer, after=lambda _: schedule.step())


def two_models() -> Training:
    first, second = nn.Linear(4, 4), nn.Linear(4, 2)
    optimizers = [
        torch.optim.Adam(first.parameters()),
        torch.optim.SGD(second.parameters(), lr=0.1, momentum=0.9),
    ]
    return Training(
        [first, second],
        optimizers,
        lambda: functional.mse_loss(second(first(INPUTS)), TARGETS),
    )


def rate_of_numpy() -> Training:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def schedule(step: int) -> None:
        optimizer.param_groups[0]["lr"] = 0.1 * np.cos(step / 100)

    return fitted(model, optimizer, after=schedule)


def own_keys() -> Training:
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    optimizer.state[7] = {"of": "the program"}
    optimizer.state["history"] = collections.deque([torch.ones(1)], maxlen=3)
    return fitted(model, optimizer)


def thawed() -> Training:
    """Its optimizer gets another group after the snapshot."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adam(model[1].parameters())

    def thaw(step: int) -> None:
        if step == FAULT + 1:
            model[0].requires_grad_(True)
            optimizer.add_param_group({"params": list(model[0].parameters()), "lr": 0.5})

    return fitted(model, optimizer, after=thaw)


def cloning_hook() -> Training:
    model = nn.Sequential(nn.Linear(4, 2))
    model._register_state_dict_hook(
        lambda _module, state, _prefix, _meta: state.update(
            {key: tensor.clone() for key, tensor in state.items()}
        )
    )
    return fitted(model)


TRAININGS: dict[str, Callable[[], Training]] = {
    "tied": tied,
    "complex_amsgrad": complex_amsgrad,
    "lbfgs": lbfgs,
    "one_cycle": one_cycle,
    "two_models": two_models,
    "rate_of_numpy": rate_of_numpy,
    "own_keys": own_keys,
    "thawed": thawed,
    "cloning_hook": cloning_hook,
    "hands_out_copies": lambda: fitted(HandsOutCopies(4, 2)),
    "takes_nothing": lambda: fitted(TakesNothing()),
    "weight_norm": lambda: fitted(nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))),
}


@pytest.mark.parametrize("kind", TRAININGS)
def test_a_checkpoint_of_before_the_fault_is_the_state_of_then(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(0)
    training = TRAININGS[kind]()
    known = stop(training, tmp_path / "run")
    done = told(tmp_path / "run")
    assert {action: each["is_finite"] for action, each in done.items()} == {
        "good_checkpoint": True,
        "checkpoint": True,
    }
    content = torch.load(done["good_checkpoint"]["path"], weights_only=True)
    assert content["step"] == done["good_checkpoint"]["to"] == FAULT
    models, optimizers = known[FAULT]
    for ours, theirs in zip(content["models"].values(), models, strict=True):
        assert same(ours, theirs)
    for ours, theirs in zip(content["optimizers"], optimizers, strict=True):
        assert same(ours, theirs)
    last = torch.load(done["checkpoint"]["path"], weights_only=True)
    assert last["step"] == ASKED_AT + 1
    assert not same(list(last["models"].values()), models)
    for model, state in zip(training.models, content["models"].values(), strict=True):
        model.load_state_dict(state)


def test_versions_of_modules_are_kept(tmp_path: Path) -> None:
    training = fitted(nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2)))
    stop(training, tmp_path / "run")
    for each in told(tmp_path / "run").values():
        content = torch.load(each["path"], weights_only=True)
        assert content["models"][""]._metadata["1"] == {"version": 2}


def growing() -> Training:
    model = nn.Sequential(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def grow(step: int) -> None:
        if step == FAULT + 1:
            model.append(nn.Linear(2, 2))
            optimizer.add_param_group({"params": list(model[1].parameters())})

    return fitted(model, optimizer, after=grow)


def watched_late() -> Training:
    first, second = nn.Linear(4, 4), nn.Linear(4, 2)
    optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)

    def watch(step: int) -> None:
        if step == FAULT + 1:
            td.watch(second)

    return Training(
        [first], [optimizer], lambda: functional.mse_loss(second(first(INPUTS)), TARGETS), watch
    )


class Halves(nn.Linear):
    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        return {n: t / 2 for n, t in super().state_dict(*args, **kwargs).items()}


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (growing, "no copy of 1.weight of the model"),
        (watched_late, "the model Linear was not watched then"),
        (lambda: fitted(Halves(4, 2)), "no copy of weight of the model"),
    ],
    ids=["grown", "watched_late", "own_values"],
)
def test_rather_none_than_one_with_weights_of_now(
    tmp_path: Path, make: Callable[[], Training], why: str
) -> None:
    stop(make(), tmp_path / "run")
    done = told(tmp_path / "run")
    assert done["good_checkpoint"]["refused"]
    assert why in done["good_checkpoint"]["text"]
    assert [p.name for p in (tmp_path / "run/checkpoints").iterdir()] == ["step-00000024.pt"]


class CannotBeWritten:
    def __deepcopy__(self, _: object) -> CannotBeWritten:
        return self

    def __reduce__(self) -> str:
        raise TypeError("this is not for writing")


def test_one_that_cannot_be_written_leaves_the_other(tmp_path: Path) -> None:
    training = fitted(nn.Linear(4, 2))

    def spoil(step: int) -> None:
        if step == FAULT + 1:
            training.optimizers[0].param_groups[0]["thing"] = CannotBeWritten()

    stop(training._replace(after=spoil), tmp_path / "run")
    done = told(tmp_path / "run")
    assert (done["good_checkpoint"]["to"], done["checkpoint"]["refused"]) == (FAULT, True)
    assert "this is not for writing" in done["checkpoint"]["text"]
    (only,) = (tmp_path / "run/checkpoints").iterdir()
    assert torch.load(only, weights_only=True)["step"] == FAULT


class OfTheProgram:
    pass


def test_what_does_not_load_as_weights_only_is_told(tmp_path: Path) -> None:
    training = fitted(nn.Linear(4, 2))
    training.optimizers[0].param_groups[0]["thing"] = OfTheProgram()
    stop(training, tmp_path / "run")
    for each in told(tmp_path / "run").values():
        assert "weights_only=False" in each["text"]
        torch.load(each["path"], weights_only=False)


def test_a_fault_of_no_known_step_has_no_checkpoint_of_before_it(tmp_path: Path) -> None:
    stop(fitted(nn.Linear(4, 2)), tmp_path / "run", bad_since=NOT_KNOWN)
    done = told(tmp_path / "run")
    assert "in an evaluation" in done["good_checkpoint"]["text"]
    assert done["good_checkpoint"]["refused"]
    assert "refused" not in done["checkpoint"]


def test_without_snapshots_there_is_the_checkpoint_of_the_stop(tmp_path: Path) -> None:
    stop(fitted(nn.Linear(4, 2)), tmp_path / "run", every=0)
    done = told(tmp_path / "run")
    assert "--snapshot-every" in done["good_checkpoint"]["text"]
    assert Path(done["checkpoint"]["path"]).exists()


def test_of_a_model_of_several_processes_there_are_no_snapshots(tmp_path: Path) -> None:
    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        stop(fitted(nn.Linear(4, 2)), tmp_path / "run")
    finally:
        torch.distributed.destroy_process_group()
    done = told(tmp_path / "run")
    assert done["good_checkpoint"]["refused"]
    assert "other processes train this model" in done["good_checkpoint"]["text"]
    assert Path(done["checkpoint"]["path"]).exists()


def huge(count: int) -> torch.Tensor:
    """It says that it is of so many bytes, and takes one."""
    return torch.zeros(1, dtype=torch.int8).expand(count)


def test_a_snapshot_that_memory_has_no_room_for_is_not_taken(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = nn.Linear(4, 2)
    model.register_buffer("huge", huge(1 << 50))
    stop(fitted(model), tmp_path / "run")
    assert capfd.readouterr().err.count("a snapshot takes 1073741824 MiB") == 1
    done = told(tmp_path / "run")
    assert "no snapshot could be taken" in done["good_checkpoint"]["text"]
    assert Path(done["checkpoint"]["path"]).exists()


def test_older_snapshots_are_kept_when_there_is_no_room_for_a_new_one(tmp_path: Path) -> None:
    model = nn.Linear(4, 2)
    model.register_buffer("cache", torch.zeros(1, dtype=torch.int8), persistent=False)
    training = fitted(model)

    def grow(step: int) -> None:
        if step == 15:
            model.cache = huge(1 << 50)

    known = stop(training._replace(after=grow), tmp_path / "run")
    good = told(tmp_path / "run")["good_checkpoint"]
    assert good["to"] == 10, "the newest of at least ten steps before the fault"
    assert same(torch.load(good["path"], weights_only=True)["models"][""], known[10][0][0])


def test_a_link_in_the_place_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    training = fitted(nn.Linear(4, 2))

    def link(step: int) -> None:
        if step == 0:
            (tmp_path / "run/checkpoints").symlink_to(elsewhere)

    stop(training._replace(after=link), tmp_path / "run")
    assert list(elsewhere.iterdir()) == []
    assert {each["refused"] for each in told(tmp_path / "run").values()} == {True}


def machine(tmp_path: Path, group: str, files: dict[str, str]) -> Path:
    files = {"proc/meminfo": "MemTotal: 9 kB\nMemAvailable: 4096 kB\n", **files}
    for name, text in {**files, "proc/self/cgroup": group}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_the_memory_left_is_the_least_of_machine_and_groups(tmp_path: Path) -> None:
    top, own = "sys/fs/cgroup", "sys/fs/cgroup/a/b"
    files = {f"{top}/a/memory.max": "max\n", f"{top}/a/memory.current": "1\n"}
    assert memory_left(machine(tmp_path / "free", "0::/a/b\n", files)) == 4096 * 1024
    files |= {
        f"{own}/memory.max": "3000000\n",
        f"{own}/memory.current": "2000000\n",
        f"{own}/memory.stat": "anon 5\ninactive_file 500000\n",
    }
    assert memory_left(machine(tmp_path / "group", "0::/a/b\n", files)) == 1500000
    files[f"{top}/a/memory.max"] = "1001\n"  # a group above it
    assert memory_left(machine(tmp_path / "above", "0::/a/b\n", files)) == 1000


def test_the_memory_left_of_groups_of_version_1(tmp_path: Path) -> None:
    own = "sys/fs/cgroup/memory"  # a container, whose path is that of the machine
    files = {
        f"{own}/memory.limit_in_bytes": "3000000\n",
        f"{own}/memory.usage_in_bytes": "2000000\n",
    }
    group = "4:cpu,memory:/docker/1\n3:pids:/docker/1\n"
    assert memory_left(machine(tmp_path / "limited", group, files)) == 1000000
    files[f"{own}/memory.limit_in_bytes"] = "9223372036854771712\n"
    assert memory_left(machine(tmp_path / "free", group, files)) == 4096 * 1024
    assert memory_left(tmp_path / "nothing") is None


def test_the_memory_left_here_is_told() -> None:
    left = memory_left()
    assert left is not None
    assert 0 <= left < 1 << 50
