"""traindbg's tracker for Accelerate, and what all integrations say without their framework."""

from __future__ import annotations

import pickle

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, PartialState
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.recording import recording as recordings
from traindbg.integrations.accelerate import Tracker


@pytest.fixture(autouse=True)
def _fresh_state():
    yield
    AcceleratorState._reset_state(reset_partial_state=True)
    assert not PartialState._shared_state


def train(model, tracker=None) -> list[torch.Tensor]:
    torch.manual_seed(3)
    for parameter in model.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, log_with=tracker)
    accelerator.init_trackers("test", {"rate": 0.1})
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)
    for step in range(8):
        with accelerator.accumulate(model):
            loss = F.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 2))
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 0.01)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        if step == 3:
            accelerator.log({"loss": loss.item(), "tensor": loss.detach(), "note": "text"}, step=99)
    accelerator.end_training()
    return [*accelerator.unwrap_model(model).parameters(), torch.get_rng_state()]


def test_a_tracked_loop_is_a_run_with_its_metrics(run_dir):
    model = nn.Linear(4, 2)
    tracker = Tracker(model, run_dir=run_dir, supervise=False, every=1)
    train(model, tracker)
    assert tracker.tracker is None
    assert recordings.current is None
    run = td.Run(run_dir)
    assert run.is_complete
    assert run.steps().tolist() == list(range(4))
    assert run.scalars("metric/loss").steps.tolist() == [2]  # the third is under way then
    assert sorted(run.names(role="metric")) == ["metric/loss", "metric/tensor"]
    norms = [run[name].values("l2")[0] for name in run.names("^gradient/")]
    assert sum(norm**2 for norm in norms) ** 0.5 == pytest.approx(0.01, rel=1e-3)


def test_a_tracked_loop_trains_the_same(run_dir):
    first, second = nn.Linear(4, 2), nn.Linear(4, 2)
    without = train(first)
    AcceleratorState._reset_state(reset_partial_state=True)
    watched = train(second, Tracker(second, run_dir=run_dir, supervise=False, every=1))
    assert all(torch.equal(a, b) for a, b in zip(without, watched, strict=True))


def test_a_tracker_without_a_model_adds_to_what_is_recorded(run_dir):
    model = nn.Linear(4, 2)
    with td.watch(model, run_dir=run_dir, supervise=False) as watcher:
        train(model, Tracker())
        assert watcher.is_active
    assert td.Run(run_dir).scalars("metric/loss").values.size == 1


class Unwilling:
    def __float__(self) -> float:
        raise LookupError("no")


class Unnamed:
    def __str__(self) -> str:
        raise LookupError("no")


def test_what_is_no_number_is_left_out_and_raises_nothing(run_dir):
    odd = {"big": 10**400, "unwilling": Unwilling(), "text": "3.5", "bytes": b"3.5", "good": 3.5}
    with td.watch(nn.Linear(4, 2), run_dir=run_dir, supervise=False):
        Tracker().log(odd)
    assert td.Run(run_dir).names(role="metric") == ["metric/good"]


def test_a_failure_of_ours_in_log_is_said_and_not_raised(run_dir, monkeypatch, capfd):
    monkeypatch.delenv("TRAINDBG_STRICT", raising=False)
    with td.watch(nn.Linear(4, 2), run_dir=run_dir, supervise=False):
        Tracker().log({Unnamed(): 1.0})
    assert "metrics: LookupError" in capfd.readouterr().err


def test_a_tracker_can_be_copied_while_it_watches(run_dir):
    tracker = Tracker(nn.Linear(4, 2), run_dir=run_dir, supervise=False)
    tracker.start()
    copied = pickle.loads(pickle.dumps(tracker))
    assert copied.tracker is None
    copied.finish()
    assert tracker.tracker.is_active
    tracker.finish()
    assert td.Run(run_dir).is_complete


@pytest.mark.parametrize("name", ["accelerate", "lightning", "transformers"])
def test_without_its_framework_an_integration_says_what_to_install(name, python):
    source = (
        "import sys\n"
        f"sys.modules[{name!r}] = sys.modules['pytorch_lightning'] = None\n"
        "try:\n"
        f"    import traindbg.integrations.{name}\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = python(source)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        f"traindbg.integrations.{name} needs {name}, which is not installed"
    )
    assert f"pip install {name}" in done.stdout
