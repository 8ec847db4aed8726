"""How often hooks wait for a device: at most once a step, and what they tell is told all the same.

TRAINDBG_DEVICE_PATH=1 takes tensors in host memory as a device's. Whatever of them a hook reads
would wait for a device then, but for what has come over when a step ends.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.base import device as devices
from traindbg.hooks.torch.base.later import Later, Packed, brought, may_read, packed

if TYPE_CHECKING:
    from pathlib import Path

STEPS = 30
BATCHES = 4  # of an evaluation
HOOKS = os.path.join("traindbg", "hooks", "")
READING = (
    "__bool__",
    "__float__",
    "__index__",
    "__int__",
    "cpu",
    "item",
    "nonzero",
    "numpy",
    "tolist",
    "unique",
)
# Generators keep their states in host memory. What comes over last is a tensor there, too.
IN_HOST_MEMORY = {("data/random_numbers.py", "states"), ("base/device.py", "_drain")}


def reader() -> tuple[str, str] | None:
    """File and function of a hook that reads a tensor; None: somebody else does."""
    frame = sys._getframe(2)
    while frame is not None:
        code = frame.f_code
        if code.co_filename != __file__ and f"{os.sep}torch{os.sep}" not in code.co_filename:
            is_ours = HOOKS in code.co_filename
            return (os.path.basename(code.co_filename), code.co_name) if is_ours else None
        frame = frame.f_back
    return None


class Waits:
    """Counts what hooks would wait for, by steps."""

    def __init__(self, monkeypatch) -> None:
        self.step = 0
        self.found: list[tuple[int, tuple[str, str]]] = []
        self._is_inside = False
        self._asked: set[int] | None = None  # memory of what was asked for, while that is told
        self._here: dict[int, torch.Tensor] = {}  # what has come over, by its memory
        for name in READING:
            self._hear(monkeypatch, torch.Tensor, name)
        self._hear(monkeypatch, torch, "equal")
        wait, deliver, unpacked = devices._Mail.wait, Later.deliver, Packed.unpacked

        def waits(mail: devices._Mail) -> None:
            self.found.append((self.step, ("base/device.py", "wait")))
            wait(mail)

        def delivers(later: Later) -> None:
            questions = later._questions
            self._asked = {x.untyped_storage().data_ptr() for q in questions for x in q.tensors}
            try:
                deliver(later)
            finally:
                self._asked = None

        def unpacks(part: Packed, host: torch.Tensor):
            self._here[host.untyped_storage().data_ptr()] = host
            return unpacked(part, host)

        monkeypatch.setattr(Packed, "unpacked", unpacks)
        monkeypatch.setattr(devices._Mail, "wait", waits)
        monkeypatch.setattr(Later, "deliver", delivers)

    def _hear(self, monkeypatch, owner, name: str) -> None:
        real = getattr(owner, name)

        def reads(tensor, *args, **kwargs):
            where = None if self._is_inside else reader()
            if where is not None and where not in IN_HOST_MEMORY and not self._is_here(tensor):
                self.found.append((self.step, where))
            before, self._is_inside = self._is_inside, True
            try:
                return real(tensor, *args, **kwargs)
            finally:
                self._is_inside = before

        monkeypatch.setattr(owner, name, reads)

    def _is_here(self, tensor: torch.Tensor) -> bool:
        """Whether it has come over, or was made of that: by who is told, of nothing else."""
        memory = tensor.untyped_storage().data_ptr()
        return memory in self._here or (self._asked is not None and memory not in self._asked)

    def of(self, step: int) -> list[tuple[str, str]]:
        return [where for at, where in self.found if at == step]


class Words(nn.Module):
    """A small transformer, with a mask for later positions and one for padding."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(40, 32, padding_idx=0), nn.Embedding(12, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 40)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        later = nn.Transformer.generate_square_subsequent_mask(12)
        padding = torch.zeros(ids.shape).masked_fill(ids == 0, -torch.inf)
        x = self.words(ids) + self.places(torch.arange(12))
        return self.head(self.layers(x, mask=later, src_key_padding_mask=padding))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(64, 32),
        nn.Dropout(0.1),
        nn.ReLU(),
        nn.Linear(32, 5),
    )


def mlp() -> nn.Module:
    wide = [nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)]
    wide[2].requires_grad_(False)  # as it was drawn
    return nn.Sequential(*wide)


MODELS = {"cnn": cnn, "mlp": mlp, "transformer": Words}


def loss_of(kind: str, model: nn.Module, step: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(step)
    if kind == "cnn":
        x = torch.randn(16, 1, 8, 8, generator=generator)
        return F.cross_entropy(model(x), torch.randint(5, (16,), generator=generator))
    if kind == "mlp":
        x = torch.randn(32, 20, generator=generator)
        return F.mse_loss(model(x), x[:, :3].sum(1, keepdim=True))
    ids = torch.randint(1, 40, (16, 13), generator=generator)
    for row in range(16):
        ids[row, 13 - 2 * (row % 3) :] = 0
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=0)


def train(kind: str, directory: Path, waits: Waits | None = None, **wishes) -> td.Run:
    """Gradients are clipped; every tenth step an evaluation follows."""
    torch.manual_seed(0)
    model = MODELS[kind]()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with td.watch(model, optimizer, run_dir=directory, supervise=False, **wishes):
        for step in range(STEPS):
            if waits is not None:
                waits.step = step
            optimizer.zero_grad()
            loss_of(kind, model, step).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if step % 10 == 9:
                if waits is not None:
                    waits.step = -1 - step
                model.eval()
                with torch.no_grad():
                    for part in range(BATCHES):
                        loss_of(kind, model, 1000 + part)
                model.train()
        if waits is not None:
            waits.step = STEPS
    return td.Run(directory)


WAIT = ("base/device.py", "wait")


@pytest.mark.parametrize("kind", MODELS)
def test_a_step_waits_once_at_most(kind, run_dir, monkeypatch):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    waits = Waits(monkeypatch)
    train(kind, run_dir, waits)
    for step in range(STEPS):
        # The last batch that is evaluated comes over when training goes on.
        is_behind = step > 0 and step % 10 == 0
        assert waits.of(step) == [WAIT] * (2 if is_behind else 1), step
        assert waits.of(-1 - step) == [WAIT] * (BATCHES - 1 if step % 10 == 9 else 0), step


def facts(run: td.Run) -> dict[str, list[tuple[int, float]]]:
    return {
        name: list(zip(run[name].steps().tolist(), run[name].values().tolist(), strict=True))
        for name in run.names()
        if name.startswith("loop/")
    }


@pytest.mark.parametrize("kind", MODELS)
def test_the_same_is_told_of_the_same_steps(kind, tmp_path, monkeypatch):
    here = facts(train(kind, tmp_path / "here"))
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    there = facts(train(kind, tmp_path / "there"))
    # Running statistics on a device are not looked at.
    here = {name: told for name, told in here.items() if not name.startswith("loop/norm_")}
    assert there.keys() == here.keys()
    for name, told in here.items():
        assert [step for step, _ in there[name]] == [step for step, _ in told], name
        values = [value for _, value in told]
        assert [value for _, value in there[name]] == pytest.approx(values, rel=1e-5), name
    counted = {name.split("/")[1] for name in here}
    expected = {"gradients_at_step", "input_directions", "trained_are_fresh", "rows_known"}
    if kind == "mlp":
        expected |= {"frozen_fresh_modules"}
    if kind == "transformer":
        expected |= {"later_seen", "masks_added", "padding_seen_instead", "rows_in_order"}
    assert counted >= expected


# The part itself.


class Device:
    """Brings tensors over, as `Deferred` does when a step ends."""

    def __init__(self) -> None:
        self.has_deferred = False
        self.brought = 0

    def bring(self, tensor: torch.Tensor) -> torch.Tensor:
        self.brought += 1
        return tensor.clone()


TENSORS = [
    torch.tensor(True),
    torch.tensor([1.5, -0.0, torch.nan]),
    torch.arange(6).view(2, 3),
    torch.arange(8.0, dtype=torch.float64)[::3],
    torch.randn(3, 2).t(),
    torch.tensor([1, 2, 3], dtype=torch.uint8),
    torch.tensor([0.5, 2.0], dtype=torch.bfloat16),
    torch.tensor([1 + 2j, 3 - 1j]).conj(),
    torch.empty(0, 4),
    torch.tensor(7, dtype=torch.int16),
]


def test_tensors_of_any_type_come_over_as_they_are(monkeypatch):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    for one, other in zip(TENSORS, brought(TENSORS), strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert repr(one.resolve_conj()) == repr(other)
    assert len(packed(TENSORS)) == 1


@pytest.mark.parametrize("before", range(1, 9))
def test_what_was_packed_before_comes_over_among_others(before, monkeypatch):
    """At a place where numbers of their type could not begin."""
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    numbers = [torch.randn(3), torch.randn(2, dtype=torch.float64), torch.arange(5)]
    (part,) = packed(numbers)
    device, told = Device(), []
    later = Later(device, device)
    later.ask("loop", [torch.ones(before, dtype=torch.bool)], lambda values: None)
    later.ask("loop", [part.together], lambda hosts: told.extend(part.unpacked(hosts[0])))
    later.send()
    later.deliver()
    assert all(torch.equal(values, numbers[place]) for place, values in told)
    assert len(told) == 3


def test_what_can_be_read_is_told_at_once():
    device, told = Device(), []
    later = Later(device, device)
    later.ask("loop", TENSORS, told.append)
    later.ask_numbers("loop", [1, torch.tensor(2.5)], told.append)
    assert [one is other for one, other in zip(TENSORS, told[0], strict=True)] == [True] * 10
    assert told[1] == [1.0, 2.5]
    assert not device.has_deferred


def test_the_rest_is_told_when_the_step_ends_in_the_order_of_asking(monkeypatch):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    assert not may_read(torch.ones(1))
    device, told = Device(), []
    later = Later(device, device)
    later.ask_numbers("loop", [torch.tensor(True), 3, torch.tensor(2.5)], told.append)
    later.ask("loop", [torch.arange(3)], lambda values: told.append(values[0].tolist()))
    later.ask("loop", [], told.append)  # nothing to wait for
    assert told == [[]]
    assert device.has_deferred
    later.send()
    later.deliver()
    assert told == [[], [1.0, 3.0, 2.5], [0, 1, 2]]
    later.send()
    later.deliver()
    assert len(told) == 3
    assert device.brought == 1


def test_what_fails_keeps_nobody_else_from_being_told(monkeypatch, capfd):
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    monkeypatch.delenv("TRAINDBG_STRICT")
    device, told = Device(), []
    later = Later(device, device)
    later.ask_numbers("waits", [torch.ones(1)], lambda values: 1 / 0)
    later.ask_numbers("waits", [torch.ones(1)], told.append)
    later.send()
    later.deliver()
    assert told == [[1.0]]
    assert "waits: ZeroDivisionError" in capfd.readouterr().err


def test_what_cannot_be_brought_over_is_not_told(run_dir, monkeypatch, capfd):
    """The step ends all the same, and the next ones are told."""
    monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    monkeypatch.delenv("TRAINDBG_STRICT")
    send, steps = Later.send, []

    def fails(later: Later) -> None:
        steps.append(len(steps))
        if len(steps) == 3:
            raise torch.OutOfMemoryError("as a device says it")
        send(later)

    monkeypatch.setattr(Later, "send", fails)
    run = train("mlp", run_dir)
    told = run["loop/input_directions"].steps().tolist()
    assert told[:4] == [0, 1, 3, 4]
    assert "devices: " in capfd.readouterr().err
