"""`--on-finding stop` and trainings that do not obey: SIGTERM after the grace, then SIGKILL.

The request is seen at the end of a step, so that a training which hangs within one never sees it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from trainings import run_training

# One loss is NaN, which fires at once; then the loop comes to no step any more.
SCRIPT = """
import signal, sys, time
import torch
from torch import nn

def on_term(number, frame):
    if sys.argv[1] == "cleans":
        print("cleaned", flush=True)
        sys.exit(7)

signal.signal(signal.SIGTERM, on_term)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    inputs = torch.full((8, 4), float("nan") if step == 1 else 1.0)
    nn.functional.mse_loss(model(inputs), torch.zeros(8, 1)).backward()
    optimizer.step()
    if step == 1:
        while True:  # longer than the test waits
            time.sleep(0.05)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A training that hangs after its fault."""
    path = tmp_path / "hangs.py"
    path.write_text(SCRIPT)
    return path


def stop_options(grace: str) -> tuple[str, ...]:
    """Stop for the NaN only, so that what is told is the same each time."""
    return ("--on-finding", "stop", "--rules", "non_finite", "--stop-grace", grace)


def test_a_training_that_ignores_everything_is_killed(tmp_path: Path, script: Path) -> None:
    done = run_training(tmp_path / "runs", script, "ignores", options=stop_options("0.2"))
    assert done.code == 90
    assert done.end["stopped_by_rule"] is True
    assert "stop the training at the next step boundary" in done.stderr
    asked, terminated, killed = (
        done.stderr.index(words) for words in ("asked to", "sending SIGTERM", "sending SIGKILL")
    )
    assert asked < terminated < killed
    assert done.stderr.count("sending SIG") == 2
    assert "killed by signal 9" in done.stderr
    assert done.rules_fired() == {"non_finite"}
    assert "non_finite" in done.report
    actions = [json.loads(line) for line in (done.run / "actions.jsonl").read_text().splitlines()]
    assert [entry["action"] for entry in actions] == ["stop"] * 3
    assert [entry["result"] for entry in actions] == ["done"] * 3
    intentions = [entry["intention"] for entry in actions]
    assert "at the next step boundary" in intentions[0]
    assert intentions[1].startswith("send SIGTERM to process ")
    assert intentions[2].startswith("send SIGKILL to process ")


def test_a_training_that_heeds_sigterm_cleans_up_and_is_not_killed(
    tmp_path: Path, script: Path
) -> None:
    done = run_training(tmp_path / "runs", script, "cleans", options=stop_options("8"))
    assert done.code == 90
    assert done.stdout.endswith("cleaned\n")
    assert "sending SIGTERM" in done.stderr
    assert "sending SIGKILL" not in done.stderr
    assert done.end["stopped_by_rule"] is True
