"""Ordinary steps bypass the hooks written in Python, and are recorded exactly as those would."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from trainings import SmallCNN, data

import traindbg as td
from traindbg.hooks.torch_recording import Recording


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


def fields(value) -> str:
    """All that an object of the extension says of itself."""
    if not type(value).__module__.startswith("traindbg"):
        return repr(value)
    names = [name for name in dir(value) if not name.startswith("_")]
    return str({name: fields(getattr(value, name)) for name in names})


def record(train, directory, **settings) -> list[tuple]:
    """All that a run holds of its steps."""
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
        for step in run.iter_steps()
    ]


@pytest.mark.parametrize(
    "settings", [{}, {"rules": [], "collect": ["losses"]}], ids=["default", "losses"]
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
    ],
)
def test_it_records_what_the_hooks_in_python_record(train, settings, tmp_path, monkeypatch) -> None:
    hot = record(train, tmp_path / "hot", **settings)
    monkeypatch.setattr(Recording, "_arm", lambda self: None)
    assert hot == record(train, tmp_path / "python", **settings)
    assert len(hot) > 8


def test_ordinary_steps_reach_no_hook_in_python(tmp_path, monkeypatch) -> None:
    calls: Counter[str] = Counter()
    for name in ("loss_computed", "backward_begins", "optimizer_will_step", "optimizer_stepped"):
        method = getattr(Recording, name)

        def counted(self, *args, _name=name, _method=method):
            calls[_name] += 1
            return _method(self, *args)

        monkeypatch.setattr(Recording, name, counted)
    steps = record(plain, tmp_path / "run", rules=[], collect=["losses"])
    assert len(steps) == 48
    assert set(calls.values()) <= {1, 2}, calls  # until it is known what an ordinary step is


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
