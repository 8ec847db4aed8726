"""A training that is told, while it runs, to capture something else."""

from __future__ import annotations

import json
import subprocess
import sysconfig
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F
from torch.utils.data import DataLoader
from trainings import SmallCNN, data, fingerprint

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = Path(sysconfig.get_path("scripts")) / "traindbg"


def set_plan(run_dir: Path, *arguments: str) -> None:
    """`traindbg set`, while this process trains not."""
    command = [str(PROGRAM), "set", str(run_dir), *arguments, "--wait", "0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr


def plan_now() -> dict[str, Any]:
    assert recordings.current is not None
    plan: dict[str, Any] = json.loads(recordings.current.session.plan())
    return plan


class Training:
    """Steps, one by one, of a model with a dropout; of each fifth there is an evaluation."""

    def __init__(self, compiled: bool = False) -> None:
        torch.manual_seed(1)
        self.model = SmallCNN(dropout=0.5)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.called: Any = torch.compile(self.model, backend="eager") if compiled else self.model
        self.losses: list[float] = []
        self.batches = self._batches()

    def _batches(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        images, labels = data().tensors
        while True:
            yield from zip(images.split(8), labels.split(8), strict=True)

    @property
    def steps(self) -> int:
        return len(self.losses)

    def step(self) -> None:
        images, labels = next(self.batches)
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.called(images), labels)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())
        if self.steps % 5 == 0:
            self.model.eval()
            with torch.no_grad():
                F.cross_entropy(self.called(images), labels)
            self.model.train()

    def until_changed(self, before: dict[str, Any]) -> int:
        """Trains until the plan is no longer `before`; gives the first step that is by it."""
        deadline = time.monotonic() + 60
        while plan_now() == before:
            assert time.monotonic() < deadline, "the plan has not changed"
            self.step()
        return self.steps

    def change(self, run_dir: Path, *arguments: str) -> int:
        before = plan_now()
        set_plan(run_dir, *arguments)
        return self.until_changed(before)

    def fingerprint(self) -> str:
        return fingerprint(self.model, self.losses)


def steps_of(run: td.Run, name: str, mode: str = "train") -> list[int]:
    return run[name].steps(mode).tolist() if name in run else []


def test_each_step_is_captured_by_the_plan_that_held_when_it_began(run_dir: Path) -> None:
    training = Training()
    with td.watch(training.model, run_dir=run_dir, rules=[], supervise=False):
        for _ in range(4):
            training.step()
        on = training.change(
            run_dir, "--collect", "gradients,outputs,weight_updates", "--every", "1"
        )
        for _ in range(3):
            training.step()
        other = training.change(
            run_dir, "--drop", "outputs,gradients", "--raw", "weights", "--every", "2"
        )
        for _ in range(6):
            training.step()
        off = training.change(run_dir, "--drop-all")
        for _ in range(3):
            training.step()
    run = td.Run(run_dir)
    assert steps_of(run, "gradient/conv.weight") == list(range(on, other))
    assert steps_of(run, "output/fc2") == list(range(on, other))
    # A schedule of another collection's leaves this one alone.
    assert steps_of(run, "weight_update/conv.weight") == list(range(on, off))
    assert run["weight/conv.weight"].raw_steps().tolist() == [
        step for step in range(other, off) if step % 2 == 0
    ]
    changes = [event for event in run.events if event["kind"] == "plan_changed"]
    assert [event["data"]["step"] for event in changes] == [on, other, off]
    assert [event["data"]["number"] for event in changes] == [1, 2, 3]


def test_a_changed_plan_changes_no_bit_of_the_training(run_dir: Path) -> None:
    training = Training()
    with td.watch(training.model, run_dir=run_dir, supervise=False):
        for _ in range(4):
            training.step()
        training.change(
            run_dir,
            *("--collect", "gradients,inputs,outputs,activations,optimizer_state,weight_updates"),
            *("--raw", "weights", "--every", "1", "--capture-in", "every"),
        )
        for _ in range(6):
            training.step()
        training.change(run_dir, "--drop-all")
        for _ in range(6):
            training.step()
    plain = Training()
    while plain.steps < training.steps:
        plain.step()
    assert plain.fingerprint() == training.fingerprint()


def test_evaluations_are_looked_at_and_left_alone_again(run_dir: Path) -> None:
    training = Training()
    with td.watch(training.model, run_dir=run_dir, rules=[], supervise=False):
        for _ in range(7):
            training.step()
        on = training.change(
            run_dir, "--collect", "outputs", "--every", "1", "--capture-in", "eval"
        )
        while training.steps < on + 12:
            training.step()
        off = training.change(run_dir, "--drop", "outputs")
        while training.steps < off + 12:
            training.step()
    run = td.Run(run_dir)
    # The n-th evaluation is after step 5 (n + 1).
    due = [number for number in range(off) if on <= 5 * (number + 1) < off]
    assert steps_of(run, "output/fc2", "eval") == due
    assert steps_of(run, "output/fc2") == []


def test_compiled_models_follow_the_choice(run_dir: Path) -> None:
    torch._dynamo.reset()
    training = Training(compiled=True)
    with td.watch(training.called, run_dir=run_dir, rules=[], supervise=False):
        for _ in range(3):
            training.step()
        on = training.change(run_dir, "--collect", "outputs", "--every", "1")
        for _ in range(3):
            training.step()
        off = training.change(run_dir, "--compiled", "skip")
        for _ in range(3):
            training.step()
    assert steps_of(td.Run(run_dir), "output/fc2") == list(range(on, off))


def test_a_change_that_is_none_is_refused_and_the_training_goes_on(run_dir: Path) -> None:
    training = Training()
    with td.watch(training.model, run_dir=run_dir, rules=[], collect="weights", supervise=False):
        training.step()
        set_plan(run_dir, "--collect", "gradients")
        before = plan_now()
        (run_dir / "plan-000001.json").write_text('{"requirements": [{"collection": "x"}]}')
        deadline = time.monotonic() + 60
        while not any(event["kind"] == "plan_refused" for event in td.Run(run_dir).events):
            assert time.monotonic() < deadline
            training.step()
        assert plan_now() == before
    assert steps_of(td.Run(run_dir), "weight/conv.weight") == list(range(training.steps))


def test_what_a_script_asks_for_under_traindbg_run_is_not_lost_by_a_change(tmp_path: Path) -> None:
    plan = json.dumps({"requirements": [{"collection": "losses", "for": "some_rule"}]})
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "plan.json").write_text(plan)
    training = Training()
    with td.watch(training.model, run_dir=tmp_path / "run", collect="weights", supervise=False):
        training.step()
        training.change(tmp_path / "run", "--collect", "gradients", "--every", "1")
        asked = {(each["collection"], each["for"]) for each in plan_now()["requirements"]}
    assert asked == {("losses", "some_rule"), ("weights", "user"), ("gradients", "user")}


def test_who_asks_for_what_is_in_the_run_already_asks_for_nothing_new(run_dir: Path) -> None:
    """As the second rank of a script does, and a second recording into the same run."""
    (run_dir).mkdir()
    (run_dir / "plan.json").write_text("{}")
    wishes: dict[str, Any] = {
        "collect": "weights",
        "collections": {"mine": "fc"},
        "capture": [{"collection": "mine", "what": ["raw", "histogram"], "steps": [3]}],
    }
    for _ in range(2):
        training = Training()
        with td.watch(training.model, run_dir=run_dir, supervise=False, **wishes):
            training.step()
            assert len(plan_now()["requirements"]) == 3
        assert [file.name for file in run_dir.glob("plan-*")] == ["plan-000001.json"]


def test_data_loader_workers_are_forked_while_a_change_is_on_its_way(run_dir: Path) -> None:
    training = Training()
    with td.watch(training.model, run_dir=run_dir, rules=[], supervise=False):
        training.step()
        before = plan_now()
        for _ in range(3):
            set_plan(run_dir, "--collect", "weights", "--every", "1")
            training.step()
            loaded = list(DataLoader(data(), batch_size=16, num_workers=2))
            assert len(loaded) == 6
        training.until_changed(before)
    run = td.Run(run_dir)
    assert run.is_complete
    assert run.workers == [0]
