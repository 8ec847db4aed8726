"""Threads that train: one after the other all are recorded, at the same time one of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.hooks.torch.steps import threads as training_threads

STEPS = 3


class Trained:
    """A small model and its training, in as many steps as it is called."""

    def __init__(self, model: nn.Module | None = None) -> None:
        self.model = model or nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def backward(self) -> None:
        self.optimizer.zero_grad()
        F.mse_loss(self.model(torch.ones(4, 3)), torch.zeros(4, 2)).backward()

    def step(self) -> None:
        self.backward()
        self.optimizer.step()


def in_another_thread(work: Callable[[], None]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


class Other:
    """A thread that stays alive and does one thing after the other."""

    def __init__(self) -> None:
        self._works: list[Callable[[], None]] = []
        self._asked, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while self._asked.acquire() and self._works:
            self._works.pop()()
            self._done.release()

    def does(self, work: Callable[[], None]) -> None:
        self._works.append(work)
        self._asked.release()
        assert self._done.acquire(timeout=60)

    def ends(self) -> None:
        self._asked.release()
        self._thread.join()


@pytest.fixture
def other():
    thread = Other()
    yield thread
    thread.ends()


def said(run: td.Run) -> list[str]:
    events = [event for event in run.events if event["kind"] == "not_captured"]
    return [event["data"]["what"] for event in events]


def watched(run_dir, *trained: Trained) -> list[td.Watcher]:
    first = {"run_dir": run_dir, "supervise": False, "every": 1}
    return [
        td.watch(each.model, each.optimizer, **(first if number == 0 else {}))
        for number, each in enumerate(trained)
    ]


def test_a_training_may_go_on_in_another_thread(run_dir, other):
    training = Trained()
    (watcher,) = watched(run_dir, training)
    training.step()
    other.does(training.step)
    training.step()
    in_another_thread(training.step)
    watcher.detach()
    run = td.Run(run_dir)
    assert run["gradient/weight"].steps().tolist() == [0, 1, 2, 3]
    assert said(run) == []


def test_of_two_at_the_same_time_the_one_is_recorded_that_made_steps(run_dir, other):
    mine, others = Trained(), Trained()
    both = watched(run_dir, mine, others)
    mine.step()
    for _ in range(STEPS):
        mine.backward()
        other.does(others.backward)
        mine.optimizer.step()
        other.does(others.optimizer.step)
    assert [watcher.is_active for watcher in both] == [True, False]
    both[0].detach()
    run = td.Run(run_dir)
    assert said(run) == ["what other threads train at the same time"]
    assert run["gradient/weight"].steps().tolist() == [0, 1, 2, 3]
    assert len(run.scalars("loss").values) == STEPS + 1


def test_the_one_that_made_steps_is_recorded_although_the_other_began_this_one(run_dir, other):
    mine, others = Trained(), Trained()
    both = watched(run_dir, others, mine)
    mine.step()
    other.does(others.backward)
    mine.step()
    assert [watcher.is_active for watcher in both] == [False, True]


class Waits(torch.autograd.Function):
    """Whose backward lets another thread go, and waits for it."""

    @staticmethod
    def forward(ctx, x, meanwhile):
        ctx.meanwhile = meanwhile
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.meanwhile()
        return gradient, None


def test_one_model_in_two_threads_ends_the_recording(run_dir, other):
    mine = Trained()
    others = Trained(mine.model)
    (watcher,) = watched(run_dir, mine)
    mine.step()
    loss = mine.model(torch.ones(4, 3)).sum()
    Waits.apply(loss, lambda: other.does(others.backward)).backward()
    assert not watcher.is_active
    assert said(td.Run(run_dir)) == ["what other threads train at the same time"]


def test_a_training_that_goes_from_thread_to_thread_is_one(run_dir, other):
    """Also where a pass had no step."""
    mine = Trained()
    (watcher,) = watched(run_dir, mine)
    mine.step()
    mine.backward()  # its step is left out
    for _ in range(STEPS):
        other.does(mine.step)
        mine.backward()
    mine.step()
    assert watcher.is_active
    watcher.detach()
    run = td.Run(run_dir)
    assert said(run) == []
    assert len(run.steps()) == STEPS + 2


def test_a_pass_inside_of_a_pass_is_part_of_it_in_whatever_thread(run_dir, other, monkeypatch):
    """On a device a recomputation runs in the thread that computes its gradients."""
    mine = Trained()
    (watcher,) = watched(run_dir, mine)
    mine.step()
    main = threading.get_ident()
    monkeypatch.setattr(training_threads, "in_backward", lambda: threading.get_ident() != main)
    loss = mine.model(torch.ones(4, 3)).sum()
    Waits.apply(loss, lambda: other.does(Trained(mine.model).backward)).backward()
    mine.optimizer.step()
    assert watcher.is_active


def test_passes_of_other_models_in_other_threads_disturb_nobody(run_dir, other):
    mine, unwatched = Trained(), Trained()
    (watcher,) = watched(run_dir, mine)
    for _ in range(STEPS):
        other.does(unwatched.backward)
        mine.backward()
        other.does(unwatched.step)
        mine.optimizer.step()
    assert watcher.is_active
    watcher.detach()
    run = td.Run(run_dir)
    assert said(run) == []
    assert run["gradient/weight"].steps().tolist() == [0, 1, 2]


def test_who_is_silent_is_heard_again_when_the_other_has_stopped(run_dir, other):
    mine, others, later = Trained(), Trained(), Trained()
    watched(run_dir, mine, others)
    mine.backward()
    other.does(others.backward)
    mine.optimizer.step()
    td.watch(later.model, later.optimizer)
    for _ in range(150):
        other.does(others.step)
    other.does(later.step)
    assert later.optimizer in recordings.current.watched.tables


def test_the_lock_of_a_hook_is_free_after_an_exception_of_the_training(run_dir, other):
    mine = Trained()
    (watcher,) = watched(run_dir, mine)
    with pytest.raises(RuntimeError):
        mine.model(torch.ones(4, 3)).backward()
    other.does(mine.step)
    watcher.detach()
    assert td.Run(run_dir).steps().tolist() == [0]


def test_a_thread_that_waits_for_others_is_not_busy() -> None:
    event, going = threading.Event(), [True]

    def spin() -> None:
        while going:
            pass

    waits = threading.Thread(target=event.wait, daemon=True)
    spins = threading.Thread(target=spin, daemon=True)
    for thread in (waits, spins):
        thread.start()
    try:
        deadline = time.monotonic() + 60
        while training_threads._is_busy(waits.ident) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not training_threads._is_busy(waits.ident)
        assert training_threads._is_busy(spins.ident)
        assert not training_threads._is_busy(None)
    finally:
        event.set()
        going.clear()
        for thread in (waits, spins):
            thread.join()
    assert not training_threads._is_busy(spins.ident)
