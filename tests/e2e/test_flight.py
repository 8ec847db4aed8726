"""What a flight recorder keeps of whole trainings, and what a budget leaves out, told to people."""

from __future__ import annotations

from pathlib import Path

import pytest
from forked import Server
from trainings import DIGITS, Outcome, run_training, traindbg, traindbg_json

import traindbg as td

SCRIPT = """
import os, signal, sys
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(300):
    inputs = torch.randn(32, 8)
    loss = F.cross_entropy(model(inputs), (inputs.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 250:
        torch.ones(1).sum()
        import time; time.sleep(0.5)
        {end}
"""


def told(outcome: Outcome) -> str:
    """The summary without its line breaks."""
    return " ".join(outcome.stderr.split())


def run_script(forked: Server, folder: Path, end: str, *, in_its_own: bool = False) -> Outcome:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(end=end))
    start = run_training if in_its_own else forked.run
    return start(folder, script, options=("--flight-recorder", "10"))


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", 137),
        ("os.abort()", 134),
        ("import ctypes; ctypes.string_at(0)", 139),
        ("os._exit(3)", 3),
    ],
)
def test_a_crash_leaves_the_last_steps(tmp_path: Path, end: str, code: int, forked: Server) -> None:
    # One of them begins as a user's process does.
    outcome = run_script(forked, tmp_path, end, in_its_own=code == 139)
    assert outcome.code == code
    flight = td.Run(outcome.run).flight
    assert flight is not None
    assert set(range(241, 251)) <= set(flight["gradient/0.weight"].steps().tolist())
    assert set(range(241, 251)) <= set(flight["activation/1"].steps().tolist())
    assert "to step 250: traindbg show " in told(outcome)
    shown = traindbg_json("show", outcome.run)
    assert shown["flight"]["last"] == 250
    assert shown["flight"]["copies"] == []
    inside = traindbg("show", str(outcome.run / "flight"), "--tensors", "--collection", "gradients")
    assert inside.stdout.count("gradient/") == 4


def test_an_exception_and_a_clean_end(tmp_path: Path, forked: Server) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    raised = run_script(forked, tmp_path / "a", "raise ValueError('no')")
    assert raised.code == 1
    assert "the training raised ValueError at step 251" in told(raised)
    clean = run_script(forked, tmp_path / "b", "pass")
    assert clean.code == 0
    assert not (clean.run / "flight").exists()
    assert "flight" not in clean.stderr


def test_a_rule_that_fires_keeps_what_led_to_it(tmp_path: Path, forked: Server) -> None:
    outcome = forked.run(
        tmp_path,
        DIGITS,
        "--fault",
        "learning_rate",
        options=("--on-finding", "stop", "--flight-recorder", "15"),
    )
    assert outcome.code == 90
    flight = td.Run(outcome.run).flight
    assert flight is not None
    found = outcome.verdict["findings"][0]["first_step"]
    assert found in flight["gradient/conv1.weight"].steps().tolist()
    # The loss may have gone bad before the supervisor came to see the finding.
    reasons = {e["data"]["reason"] for e in flight.events if e["kind"] == "flight_recorder"}
    assert reasons <= {"a rule found something", "a loss is not finite", "a weight is not finite"}
    assert reasons
    assert "steps around what went wrong (" in told(outcome)


def test_a_budget_is_told(tmp_path: Path, forked: Server) -> None:
    everything = "weights,biases,gradients,inputs,outputs,activations"
    capture = ("--collect", everything, "--histograms", everything, "--every", "1")
    outcome = forked.run(tmp_path, DIGITS, options=(*capture, "--budget", "0.1%"))
    assert outcome.code == 0
    (last,) = (e["data"] for e in td.Run(outcome.run).events if e["kind"] == "budget")
    assert last["budget"] == 0.001
    assert 0 < last["steps_left_out"] < last["steps_due"]
    assert f"0.1 %: {last['steps_left_out']} of {last['steps_due']} steps" in told(outcome)
    losses = td.Run(outcome.run).scalars("loss")
    assert losses.steps.tolist() == list(range(len(losses.steps)))


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--budget", "2 percent"], "--budget: '2 percent' is no share"),
        (["--budget", "100%"], "--budget: '100%' is no share"),
        (["--flight-raw", "gradients"], "needs --flight-recorder"),
        (["--flight-recorder", "5", "--flight-raw", "gradient"], "did you mean 'gradients'"),
        (["--flight-recorder", "0"], "--flight-recorder"),
    ],
)
def test_bad_options_start_nothing(tmp_path: Path, options: list[str], word: str) -> None:
    outcome = run_training(tmp_path, DIGITS, options=tuple(options))
    assert outcome.code == 2
    assert word in outcome.stderr
    assert outcome.stdout == ""
