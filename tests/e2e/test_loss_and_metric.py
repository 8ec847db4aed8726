"""Losses that jump, metrics that contradict the loss, optimizers that never step: real trainings.

Each fault has its healthy twin: the same script with another word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Protocol

    from forked import Server

    class Findings(Protocol):
        """Of a kind of training, those of a rule."""

        def __call__(self, kind: str, rule: str, steps: int = 600) -> list[dict[str, Any]]: ...


SCRIPT = """
import sys

import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

kind = sys.argv[1]
torch.manual_seed(0)
inputs, truth = torch.randn(1024, 20), torch.randn(20, 4)
labels = (inputs @ truth + 0.5 * torch.randn(1024, 4)).argmax(1)
unseen = torch.randn(256, 20)
expected = (unseen @ truth).argmax(1)
shuffled = expected[torch.randperm(256)]
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
right = wrong = 0
for step in range(int(sys.argv[2])):
    rows = torch.randint(0, 1024, (64,))
    x, y = inputs[rows], labels[rows]
    if kind == "outliers" and step == 300:
        x, y = 60 * x, (y + 1) % 4
    if kind == "broken" and step == 300:
        with torch.no_grad():  # as a broken layer of an update does
            for parameter in model.parameters():
                parameter.normal_(std=0.05)
        optimizer.param_groups[0]["lr"] = 1e-9
    loss = F.cross_entropy(model(x), y)
    if kind != "no_backward":
        optimizer.zero_grad()
        loss.backward()
    if kind == "by_hand":
        for parameter in model.parameters():
            parameter.data -= 0.1 * parameter.grad
    elif kind not in ("no_step", "no_backward"):
        optimizer.step()
    if kind.startswith("metric") and step % 20 == 19:
        model.eval()
        with torch.no_grad():
            answers = model(unseen)
            F.cross_entropy(answers, expected)
            right += int((answers.argmax(1) == expected).sum())
            wrong += 256
            accuracy = right / wrong
            # Never cleared, and divided once more for each evaluation.
            td.log("eval_accuracy", accuracy if kind == "metric" else accuracy / (step // 20 + 1))
        model.train()
"""


@pytest.fixture
def findings(tmp_path: Path, forked: Server) -> Findings:
    def findings(kind: str, rule: str, steps: int = 600) -> list[dict[str, Any]]:
        script = tmp_path / "train.py"
        script.write_text(SCRIPT)
        outcome = forked.run(tmp_path / "runs", script, kind, steps, options=("--no-report",))
        assert outcome.code == 0, outcome.stderr
        return [finding for finding in outcome.verdict["findings"] if finding["rule"] == rule]

    return findings


def test_a_batch_of_outliers_is_a_note_with_its_step(findings: Findings) -> None:
    (found,) = findings("outliers", "loss_spike")
    assert (found["severity"], found["key"]) == ("info", "spike")
    assert found["first_step"] == 300
    assert "within" in found["message"]
    assert "step 300" in found["fix"]


def test_a_jump_that_stays_is_a_warning_from_its_first_step(findings: Findings) -> None:
    (found,) = findings("broken", "loss_spike")
    assert (found["severity"], found["key"]) == ("warning", "not_back")
    assert found["first_step"] == 300


def test_a_metric_that_falls_while_its_loss_does_is_a_note(findings: Findings) -> None:
    (found,) = findings("metric_wrong", "metric_contradicts_loss")
    assert (found["severity"], found["tensor"]) == ("info", "metric/eval_accuracy")


@pytest.mark.parametrize(
    ("kind", "severity", "key"),
    [("no_step", "warning", "step"), ("no_backward", "info", "backward")],
)
def test_a_loop_without_a_step_is_told_at_its_end(
    findings: Findings, kind: str, severity: str, key: str
) -> None:
    (found,) = findings(kind, "optimizer_never_steps", steps=60)
    assert (found["severity"], found["key"]) == (severity, key)
    assert "60" in found["message"]


@pytest.mark.parametrize(
    ("kind", "rule", "steps"),
    [
        ("metric", "loss_spike", 600),
        ("metric", "metric_contradicts_loss", 600),
        ("by_hand", "optimizer_never_steps", 60),
        ("trained", "optimizer_never_steps", 60),
        ("no_step", "optimizer_never_steps", 10),
    ],
)
def test_their_healthy_twins_are_left_alone(
    findings: Findings, kind: str, rule: str, steps: int
) -> None:
    assert findings(kind, rule, steps) == []
