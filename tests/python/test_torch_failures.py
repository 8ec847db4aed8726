"""A failure of traindbg's own belongs to the recording in which it happened, which tells of it."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg.hooks.torch.base import guard as guards
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.recording.buffers import BufferObserver


class WeirdError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("even this")


@pytest.fixture(autouse=True)
def _lenient(monkeypatch):
    monkeypatch.setenv("TRAINDBG_STRICT", "0")


def train(run_dir, steps=6):
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = {
        "collect": ["buffers", "weights", "losses"],
        "every": 1,
        "rules": [],
        "supervise": False,
    }
    with td.watch(model, optimizer, run_dir=run_dir, **options):
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(5, 4)).square().mean().backward()
            optimizer.step()
    return td.Run(run_dir)


def told(run):
    kinds = ("hook_error", "hook_off")
    return [
        (e["kind"], e["data"]["part"], e["data"]["step"]) for e in run.events if e["kind"] in kinds
    ]


def break_from(monkeypatch, step, error=None):
    take = BufferObserver.take

    def broken(self):
        if recordings.current.hot.steps >= step:
            raise error or RuntimeError("injected")
        take(self)

    monkeypatch.setattr(BufferObserver, "take", broken)


def test_the_third_failure_is_said_with_the_step_from_which_on_the_part_is_missing(
    run_dir, monkeypatch, capfd
):
    break_from(monkeypatch, 1)
    run = train(run_dir)
    assert told(run) == [("hook_error", "buffers", 1), ("hook_off", "buffers", 3)]
    (off,) = (event["data"] for event in run.events if event["kind"] == "hook_off")
    assert off["failures"] == 3
    assert off["error"] == "RuntimeError: injected"
    said = capfd.readouterr().err
    assert said.count("injected") == 1
    assert "at step 1" in said
    assert said.count("buffers: failed 3 times; it is not recorded from step 3 on") == 1
    assert run["buffer/1.running_mean"].steps().tolist() == [0]
    assert run["weight/0.weight"].steps().size == 6


def test_the_next_recording_begins_anew(tmp_path, monkeypatch, capfd):
    with monkeypatch.context() as patch:
        break_from(patch, 0)
        first = train(tmp_path / "first")
        second = train(tmp_path / "second")
        assert told(first) == told(second)
        assert [kind for kind, _, _ in told(second)] == ["hook_error", "hook_off"]
    assert capfd.readouterr().err.count("injected") == 2
    third = train(tmp_path / "third")
    assert not told(third)
    assert third["buffer/1.running_mean"].steps().size == 6
    assert not guards.failures


def test_the_hot_path_of_the_next_recording_is_taken_again(tmp_path):
    guards.failures["losses"] = guards.STRIKES
    assert guards.hot_path_is_off()
    run = train(tmp_path / "run")
    assert not guards.failures
    assert run["loss"].steps().size == 6


def test_an_error_that_cannot_be_told_harms_nothing(run_dir, monkeypatch):
    break_from(monkeypatch, 0, WeirdError())
    run = train(run_dir)
    assert [event["data"]["error"] for event in run.events if event["kind"] == "hook_error"] == [
        "WeirdError"
    ]


def test_a_recording_that_is_over_is_not_kept_alive(run_dir):
    train(run_dir)
    gone = guards._guard_of_now
    gc.collect()
    assert isinstance(gone, weakref.ref)
    assert gone() is None


def test_without_a_recording_it_is_said_all_the_same(capfd):
    guards.failures.clear()

    def broken():
        raise RuntimeError("injected")

    for _ in range(5):
        guards.guarded("a part", broken)
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2
    assert "a part: RuntimeError: injected" in said[0]
    assert said[1].endswith("a part: failed 3 times; it is not recorded any more")
