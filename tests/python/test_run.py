"""Reading runs from Python."""

from __future__ import annotations

import json
import shutil
import threading
import time

import numpy as np
import pytest
import torch
from torch import nn

import traindbg as td
from traindbg import errors


@pytest.fixture
def recorded(run_dir):
    """Ten steps of a small model, closed."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with td.watch(model, run_dir=run_dir, every=2, supervise=False):
        for _ in range(10):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(torch.randn(5, 4)), torch.zeros(5, 3))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return td.Run(run_dir), losses


def test_scalars_are_arrays_of_what_was_seen(recorded):
    run, losses = recorded
    steps, values = run.scalars("loss")
    assert steps.dtype == np.uint64
    assert values.dtype == np.float64
    np.testing.assert_array_equal(steps, np.arange(10))
    np.testing.assert_allclose(values, losses, rtol=1e-7)


def test_names_by_pattern_collection_and_role(recorded):
    run, _ = recorded
    assert run.names(r"^weight/") == ["weight/0.weight", "weight/2.weight"]
    assert run.names(collection="biases") == ["bias/0.bias", "bias/2.bias"]
    assert run.names(role="activation") == ["activation/1"]
    assert run.names("0", role="gradient") == ["gradient/0.weight", "gradient/0.bias"]
    assert run.names("no such") == []
    with pytest.raises(errors.InvalidArgument, match="regular expression"):
        run.names("(")


def test_unknown_names_are_answered_with_the_nearest(recorded):
    run, _ = recorded
    with pytest.raises(errors.NotFound, match=r"gradient/0\.weight"):
        run.tensor("gradient/0.weigth")
    with pytest.raises(td.TraindbgError):
        run["loss"].values("median")
    with pytest.raises(errors.InvalidArgument, match="training"):
        run.steps("training")
    with pytest.raises(errors.NotFound, match="worker 7"):
        run.worker_meta(7)


def test_what_is_no_run_is_said(tmp_path):
    with pytest.raises(errors.RunNotFound, match="nowhere"):
        td.Run(tmp_path / "nowhere")
    assert td.runs(tmp_path / "nowhere") == []


def test_runs_lists_run_directories_only(recorded, tmp_path):
    run, _ = recorded
    (tmp_path / "something else").mkdir()
    assert [found.name for found in td.runs(tmp_path)] == [run.name]


def test_runs_are_listed_oldest_first(tmp_path):
    for name in ("b", "c", "a"):
        model = torch.nn.Linear(1, 1)
        td.watch(model, run_dir=tmp_path / name, supervise=False).detach()
    assert [found.name for found in td.runs(tmp_path)] == ["b", "c", "a"]


def test_for_people_and_for_machines(recorded):
    run, _ = recorded
    assert "10 train steps" in repr(run)
    assert "gradient/0.weight" in repr(run["gradient/0.weight"])
    described = json.loads(json.dumps(run.to_dict()))
    assert described["name"] == run.name
    assert described["complete"] is True
    assert described["totals"]["steps"] == 10
    assert run.step(3).mode == "train"
    assert run.step(99) is None


def test_html_is_escaped(recorded):
    run, _ = recorded
    bad = "<img onerror=alert(1)>"
    verdict = {
        "findings": [{"rule": "dead_relu", "severity": bad, "message": bad, "fix": bad}],
        "rules": [{"rule": "dead_relu", "state": "fired"}, {"rule": "overfit", "state": "clean"}],
    }
    (run.path / "verdict.json").write_text(json.dumps(verdict))
    page = run._repr_html_()
    assert "<img" not in page
    assert page.count("&lt;img") == 3
    assert "1 finding, clean: 1" in page
    assert run.findings[0]["rule"] == "dead_relu"
    assert run.causes == []


def test_a_growing_run_is_followed_to_its_end(run_dir):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(model, run_dir=run_dir, supervise=False)
    reader = td.Run(run_dir)
    seen: list[int] = []

    def follow() -> None:
        seen.extend(s.step for s in reader.follow(timeout=30) if s.mode == "train")

    thread = threading.Thread(target=follow)
    thread.start()
    for _ in range(20):
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        time.sleep(0.002)
    waiting = td.Run(run_dir)
    assert waiting.wait_for_steps(20, timeout=30)
    assert not waiting.wait_for_steps(21, timeout=0.05)
    watcher.detach()
    thread.join(60)
    assert not thread.is_alive()
    assert seen == list(range(20))


def test_follow_gives_up_after_its_timeout(run_dir):
    model = nn.Linear(4, 1)
    with td.watch(model, run_dir=run_dir, supervise=False):
        assert list(td.Run(run_dir).follow(timeout=0.05)) == []


def test_a_watched_training_is_judged_by_a_supervisor_of_its_own(python, tmp_path):
    source = (
        "import torch, traindbg as td\n"
        "torch.manual_seed(0)\n"
        "model = torch.nn.Linear(4, 1)\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "td.watch(model, optimizer, run_dir='supervised')\n"
        "for _ in range(40):\n"  # and no zero_grad()
        "    torch.nn.functional.mse_loss(model(torch.randn(8, 4)), torch.ones(8, 1)).backward()\n"
        "    optimizer.step()\n"
    )
    done = python(source)
    assert done.returncode == 0, done.stderr
    report = tmp_path / "supervised" / "report.html"
    deadline = time.monotonic() + 60
    while not report.is_file() and time.monotonic() < deadline:
        time.sleep(0.05)
    run = td.Run(tmp_path / "supervised")
    assert "gradients_not_cleared" in [finding["rule"] for finding in run.findings]
    states = {outcome["rule"]: outcome["state"] for outcome in run.outcomes}
    assert states["gradients_not_cleared"] == "fired"
    assert run.causes[0]["name"] == "gradients_not_cleared"
    assert report.is_file()


def test_a_watcher_shows_its_run_or_nothing(run_dir):
    model = nn.Linear(4, 1)
    with td.watch(model, run_dir=run_dir, supervise=False) as watcher:
        assert "<table>" in watcher._repr_html_()
    shutil.rmtree(run_dir)
    assert watcher._repr_html_() is None
    assert "Linear" in repr(watcher)
