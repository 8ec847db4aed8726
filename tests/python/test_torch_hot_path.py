"""Ordinary steps bypass the hooks written in Python, and are recorded exactly as those would."""

from __future__ import annotations

import contextlib
from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import SmallCNN, data

import traindbg as td
from traindbg.hooks.torch.base.guard import STRIKES
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.recording.backward import BackwardObserver
from traindbg.hooks.torch.recording.loss_observer import LossObserver
from traindbg.hooks.torch.recording.recording import Recording
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.steps.threads import Threads


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    images, labels = data().tensors
    return list(zip(images.split(8), labels.split(8), strict=True))


def plain(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(4):
        for images, labels in batches():
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()


def with_evaluation(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for _ in range(3):
        model.train()
        plain(model, optimizer)
        model.eval()
        with torch.no_grad():
            for images, labels in batches()[:3]:
                F.cross_entropy(model(images), labels)


def with_schedule(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    for images, labels in batches() * 3:
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()
        schedule.step()


def with_scaler(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    for images, labels in batches() * 2:
        optimizer.zero_grad()
        scaler.scale(F.cross_entropy(model(images), labels)).backward()
        scaler.step(optimizer)
        scaler.update()


def with_accumulation(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for number, (images, labels) in enumerate(batches() * 3):
        (F.cross_entropy(model(images), labels) / 3).backward()
        if number % 3 == 2:
            optimizer.step()
            optimizer.zero_grad()


def with_two_losses(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    for images, labels in batches() * 3:
        optimizer.zero_grad()
        out = model(images)
        loss = F.cross_entropy(out, labels) + 0.1 * F.mse_loss(out, torch.zeros_like(out))
        loss.backward()
        optimizer.step()


def with_a_second_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    plain(model, optimizer)
    other = torch.optim.Adam(model.parameters(), lr=0.001)
    for _ in range(3):  # after 100 of its steps it drives
        plain(model, other)


def with_a_loss_that_turns_bad(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    plain(model, optimizer)
    for images, labels in batches():
        optimizer.zero_grad()
        (F.cross_entropy(model(images), labels) * float("inf")).backward()
        optimizer.step()


def with_a_new_group(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    plain(model, optimizer)
    extra = nn.Parameter(torch.ones(3))
    model.register_parameter("extra", extra)
    optimizer.add_param_group({"params": [extra], "lr": 0.5})
    plain(model, optimizer)


def with_a_step_that_raises(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    plain(model, optimizer)

    def fail(*_) -> None:
        raise ValueError("no step")

    handle = optimizer.register_step_pre_hook(fail)
    for number, (images, labels) in enumerate(batches()):
        if number == 2:
            handle.remove()
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        with contextlib.suppress(ValueError):
            optimizer.step()


class Wrapping(torch.optim.SGD):
    """An optimizer that has another one of the same parameters step inside of its own step."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        super().__init__([p for group in inner.param_groups for p in group["params"]], lr=0.01)
        self.inner = inner

    def step(self, closure=None):
        self.inner.step()
        return super().step(closure)


def with_an_optimizer_inside_of_another(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    plain(model, Wrapping(optimizer))


def fields(value) -> str:
    """All that an object of the extension says of itself."""
    if not type(value).__module__.startswith("traindbg"):
        return repr(value)
    names = [name for name in dir(value) if not name.startswith("_")]
    return str({name: fields(getattr(value, name)) for name in names})


def record(train, directory, **settings) -> list[tuple]:
    """All that a run holds of its steps, and its events."""
    torch.manual_seed(3)
    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with td.watch(model, optimizer, run_dir=directory, supervise=False, **settings):
        train(model, optimizer)
    run = td.Run(directory)
    return [
        (
            step.mode,
            step.step,
            {name: fields(value) for name, value in step.scalars.items()},
            {name: fields(value) for name, value in step.tensors.items()},
            {name: fields(value) for name, value in step.classes.items()},
        )
        for mode in ("train", "eval")
        for step in run.iter_steps(mode)
    ] + [(event["kind"], str(event["data"])) for event in run.events]


OPTIMIZERS = {"rules": [], "collect": ["optimizer_state", "weight_updates"], "every": 2}


@pytest.mark.parametrize(
    "settings",
    [{}, {"rules": [], "collect": ["losses"]}, OPTIMIZERS],
    ids=["default", "losses", "optimizers"],
)
@pytest.mark.parametrize(
    "train",
    [
        plain,
        with_evaluation,
        with_schedule,
        with_scaler,
        with_accumulation,
        with_two_losses,
        with_a_second_optimizer,
        with_a_loss_that_turns_bad,
        with_a_new_group,
        with_a_step_that_raises,
        with_an_optimizer_inside_of_another,
    ],
)
def test_it_records_what_the_hooks_in_python_record(train, settings, tmp_path, monkeypatch) -> None:
    hot = record(train, tmp_path / "hot", **settings)
    monkeypatch.setattr(Recording, "_arm", lambda self: None)
    assert hot == record(train, tmp_path / "python", **settings)
    assert len(hot) > 5


@pytest.fixture
def calls(monkeypatch) -> Counter[str]:
    """How often each hook in Python was called."""
    calls: Counter[str] = Counter()
    for part, name in (
        (LossObserver, "loss_computed"),
        (BackwardObserver, "backward_begins"),
        (Recording, "optimizer_will_step"),
        (Recording, "optimizer_stepped"),
    ):
        method = getattr(part, name)

        def counted(self, *args, _name=name, _method=method):
            calls[_name] += 1
            return _method(self, *args)

        monkeypatch.setattr(part, name, counted)
    return calls


def test_ordinary_steps_reach_no_hook_in_python(tmp_path, calls) -> None:
    steps = record(plain, tmp_path / "run", rules=[], collect=["losses"])
    assert len([step for step in steps if step[0] == "train"]) == 48
    assert set(calls.values()) <= {1, 2}, calls  # until it is known what an ordinary step is


def test_whose_a_pass_is_is_not_asked_at_every_step(tmp_path, monkeypatch) -> None:
    asked = []
    hears = Threads.hears_backward
    monkeypatch.setattr(
        Threads, "hears_backward", lambda self, root: (asked.append(root), hears(self, root))[1]
    )
    record(plain, tmp_path / "run", rules=[], collect=["losses"])
    assert len(asked) <= 3, "until it is known which model the thread trains"


def test_losses_are_recorded_from_where_somebody_asks_for_them(tmp_path) -> None:
    model, other = SmallCNN(), nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", rules=[], supervise=False):
        plain(model, optimizer)  # 48 steps of which nobody wants anything
        with td.watch(other, rules=[], collect=["losses"]):
            images, labels = batches()[0]
            optimizer.zero_grad()
            F.cross_entropy(model(images), labels).backward()
            optimizer.step()
    step = td.Run(tmp_path / "run").step(48)
    assert set(step.scalars) == {"loss", "loss/cross_entropy"}


def test_evaluations_are_told_apart_where_nobody_asks_for_anything(tmp_path) -> None:
    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", rules=[], supervise=False):
        for _ in range(2):
            with_evaluation(model, optimizer)
            with torch.no_grad():
                F.cross_entropy(model(batches()[0][0]), batches()[0][1])
            td.log("accuracy", 0.5)
    run = td.Run(tmp_path / "run")
    assert [step.mode for step in run.iter_steps("eval") if "metric/accuracy" in step.scalars] == [
        "eval",
        "eval",
    ]


def test_steps_between_those_that_look_at_the_optimizer_are_ordinary(tmp_path, calls) -> None:
    steps = record(plain, tmp_path / "run", **OPTIMIZERS | {"every": 6})
    assert [step[1] for step in steps if step[0] == "train"] == list(range(0, 48, 6))
    assert calls["optimizer_stepped"] == 8
    assert calls["optimizer_will_step"] == 8
    assert max(calls["loss_computed"], calls["backward_begins"]) <= 2, calls


def test_the_hot_path_keeps_neither_model_nor_recording_alive(tmp_path) -> None:
    import gc
    import weakref

    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    watcher = td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False)
    plain(model, optimizer)
    recording = weakref.ref(watcher._recording)
    alive = weakref.ref(model)
    watcher.detach()
    del model, optimizer, watcher
    gc.collect()
    assert alive() is None
    assert recording() is None


def test_losses_are_heard_after_one_that_raised(tmp_path) -> None:
    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    settings = {"rules": [], "collect": ["losses"]}
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, **settings):
        with pytest.raises(ValueError, match="batch_size"):
            F.cross_entropy(torch.zeros(3, 2), torch.zeros(4, dtype=torch.long))
        assert not patches.state.inside_loss
        plain(model, optimizer)
    assert td.Run(tmp_path / "run").scalars("loss/cross_entropy").steps.tolist() == list(range(48))


class Interrupted(torch.optim.SGD):
    """Reads its groups through Python code, in which Ctrl-C may arrive."""

    now = False

    @property
    def param_groups(self):
        if Interrupted.now:
            Interrupted.now = False
            raise KeyboardInterrupt
        return self.__dict__["groups"]

    @param_groups.setter
    def param_groups(self, groups) -> None:
        self.__dict__["groups"] = groups


def test_ctrl_c_in_an_attribute_of_the_users_is_not_swallowed(tmp_path) -> None:
    model = SmallCNN()
    optimizer = Interrupted(model.parameters(), lr=0.05)
    settings = {"rules": [], "collect": ["losses"]}
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False, **settings):
        plain(model, optimizer)
        hot = patches.state.hot
        assert hot.optimizer_will_step(optimizer)
        Interrupted.now = True
        with pytest.raises(KeyboardInterrupt):
            hot.optimizer_will_step(optimizer)


class Unhashable(torch.optim.SGD):
    __hash__ = None  # as of a class with __eq__, such as a dataclass

    def __eq__(self, other: object) -> bool:
        return self is other


def test_an_optimizer_that_cannot_be_hashed_does_no_harm(tmp_path) -> None:
    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    other = Unhashable(SmallCNN().parameters(), lr=0.05)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False) as watcher:
        plain(model, optimizer)
        for _ in range(5):
            other.step()
        plain(model, optimizer)
        assert watcher._recording.hot.steps == 96
    assert [event["kind"] for event in td.Run(tmp_path / "run").events].count("not_captured") == 1


@pytest.mark.parametrize("feature", ["losses", "backward", "optimizer", "rows", "activations"])
def test_what_it_does_not_carry_may_fail(tmp_path, monkeypatch, feature) -> None:
    monkeypatch.delenv("TRAINDBG_STRICT")
    is_carried = feature in ("losses", "backward", "optimizer")
    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    settings = {"rules": [], "collect": ["losses"]}
    with td.watch(
        model, optimizer, run_dir=tmp_path / "run", supervise=False, **settings
    ) as watcher:
        plain(model, optimizer)
        recording = watcher._recording
        for _ in range(STRIKES):
            assert recording.hot.optimizer_will_step(optimizer)
            recording.guard.failed(feature, RuntimeError("injected"))
        assert recording.hot.optimizer_will_step(optimizer) != is_carried
        recording._arm()  # as where a rate changes
        assert recording.hot.optimizer_will_step(optimizer) != is_carried


def test_a_device_that_fails_neither_holds_up_steps_nor_keeps_memory(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("TRAINDBG_STRICT")
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")

    def full(tensors, *rest):
        raise torch.OutOfMemoryError("injected")

    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with td.watch(model, optimizer, run_dir=tmp_path / "run", supervise=False) as watcher:
        recording = watcher._recording
        with monkeypatch.context() as failing:
            failing.setattr(torch, "cat", full)
            plain(model, optimizer)
        assert recording.hot.steps == 48
        assert not recording.tensors.deferred._vectors


def test_a_second_model_is_watched_although_its_optimizer_stepped_before(tmp_path) -> None:
    first, second = SmallCNN(), SmallCNN()
    one = torch.optim.SGD(first.parameters(), lr=0.05)
    two = torch.optim.SGD(second.parameters(), lr=0.05)
    with td.watch(first, one, run_dir=tmp_path / "run", supervise=False):
        plain(first, one)
        plain(second, two)
        with td.watch(second, two):
            plain(second, two)
    assert any("SmallCNN.fc1.weight" in name for name in td.Run(tmp_path / "run").names())


def test_folds_one_after_another_count_every_step(tmp_path) -> None:
    optimizers = []  # kept, as a list of results would
    steps = []
    for fold in range(2):
        model = SmallCNN()
        optimizers.append(torch.optim.SGD(model.parameters(), lr=0.05))
        watcher = td.watch(model, run_dir=tmp_path / "run", supervise=False)
        plain(model, optimizers[fold])
        steps.append(watcher._recording.hot.steps)
        if fold == 0:
            kept = td.watch(SmallCNN(), supervise=False)  # the recording goes on
            del watcher, model
    assert steps == [48, 96]
    recordings.current.close()
    assert not kept.is_active
