"""StalledTrainingRule on trainings that really hang: found while they do, stopped where asked.

Loading PyTorch, and leaving it, may take longer than a threshold of some seconds, too: no test
depends on that it does not.
"""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from trainings import Outcome, run_training, traindbg_json

# Sleeps before the first step, and after the third one.
PROGRAM = textwrap.dedent("""
    import sys, time
    import torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    time.sleep(float(sys.argv[1]))
    for step in range(6):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(torch.ones(8, 4)), torch.zeros(8, 1)).backward()
        optimizer.step()
        if step == 2:
            time.sleep(float(sys.argv[2]))
    print("trained")
""")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "sleeps.py"
    path.write_text(PROGRAM)
    return path


def run(program: Path, *seconds: float, threshold: int = 2, **parameters: str) -> Outcome:
    configuration = {
        "RuleConfigurationName": "stalled",
        "RuleParameters": {
            "rule_to_invoke": "StalledTrainingRule",
            "threshold": str(threshold),
            **parameters,
        },
    }
    rules = program.with_name("rules.json")
    rules.write_text(json.dumps([configuration]))
    options = ["--rules", "non_finite", "--rules-json", str(rules)]
    options += ["--name", "night-1", "--stop-grace", "0.2", "--no-report"]
    return run_training(program.parent / "runs", program, *seconds, options=tuple(options))


def stalled(verdict: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in verdict["findings"] if each["rule"] == "StalledTrainingRule"]


def journal_of(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (outcome.run / "actions.jsonl").read_text().splitlines()]


def test_a_training_that_stalls_is_told_while_it_does(program: Path) -> None:
    outcome = run(program, 0, 4.5, threshold=2)
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout == "trained\n"
    assert not (outcome.run / "actions.jsonl").exists()
    assert "StalledTrainingRule" in outcome.stderr
    (stored,) = stalled(traindbg_json("check", outcome.run, codes=(0, 1)))
    for finding in (*stalled(outcome.verdict), stored):
        assert finding["times"] >= 1
        assert finding["evidence"][0]["value"] >= 2


def test_a_stalled_training_is_stopped_by_the_rule_and_ended_as_it_hangs(program: Path) -> None:
    outcome = run(
        program, 0, 600, threshold=4, stop_training_on_fire="True", training_job_name_prefix="Night"
    )
    assert outcome.code == 90, outcome.stderr
    assert outcome.stdout == ""
    assert outcome.end["stopped_by_rule"] is True
    assert outcome.end["reason"] == "stopped by rule StalledTrainingRule"
    assert "it gets SIGTERM in 200 ms" in outcome.stderr
    intentions = [entry["intention"] for entry in journal_of(outcome)]
    assert "stop the training at the next step boundary" in intentions[0]
    assert intentions[1].startswith("send SIGTERM to process ")


def test_a_training_that_hangs_before_its_first_step_is_found_and_stopped(program: Path) -> None:
    outcome = run(program, 600, 0, stop_training_on_fire="True")
    assert outcome.code == 90, outcome.stderr
    (live,) = stalled(outcome.verdict)
    assert "after the run began" in live["message"]
    (stored,) = stalled(traindbg_json("check", outcome.run, codes=(0, 1)))
    assert "after the run began" in stored["message"]


def test_a_run_of_another_name_is_not_stopped_and_that_is_said(program: Path) -> None:
    outcome = run(
        program, 4.5, 0, stop_training_on_fire="True", training_job_name_prefix="day", threshold=2
    )
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout == "trained\n"
    assert (
        "StalledTrainingRule.stop_training_on_fire is for jobs that begin with 'day', and not for "
        "night-1" in outcome.stderr
    )
    assert stalled(outcome.verdict)
    assert not (outcome.run / "actions.jsonl").exists()
