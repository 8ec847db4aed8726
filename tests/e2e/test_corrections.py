"""Trainings that fail, and that do not when traindbg may correct them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from forked import Server
from trainings import Outcome, traindbg, traindbg_json

PROGRAM = Path(__file__).with_name("corrected_training.py")
# The rules answer from beside the training: on a busy machine, too, some of it has to be left then.
STEPS = ("--steps", "500")
PAUSE = (*STEPS, "--pause", "0.015")


def run(
    forked: Server, tmp_path: Path, *words: str, options: tuple[str, ...] = ()
) -> tuple[Outcome, Any]:
    out = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
    runs = tmp_path / f"runs-{out.stem}"
    outcome = forked.run(runs, PROGRAM, words[0], str(out), *words[1:], options=options)
    return outcome, json.loads(out.read_text()) if out.exists() else None


def corrections(outcome: Outcome) -> list[dict[str, Any]]:
    return traindbg_json("show", outcome.run)["corrections"]


@pytest.mark.parametrize("how", [(), ("--closure",), ("--scheduler",)])
def test_a_batch_of_nan_ruins_the_training_unless_its_step_is_left_out(
    forked: Server, tmp_path: Path, how: tuple[str, ...]
) -> None:
    _, ruined = run(forked, tmp_path, "nan_batch", *how)
    assert math.isnan(ruined["losses"][-1])
    outcome, saved = run(forked, tmp_path, "nan_batch", *how, options=("--skip-bad-steps",))
    assert outcome.code == 0, outcome.stderr
    assert saved["accuracy"] > 0.9
    assert sum(math.isnan(loss) for loss in saved["losses"]) == 1
    assert saved["losses"][:150] == ruined["losses"][:150]
    (made,) = corrections(outcome)
    assert (made["action"], made["step"]) == ("skip_step", 150)
    assert "step 150 was left out" in outcome.stderr


def test_a_batch_with_a_huge_gradient_is_left_out(forked: Server, tmp_path: Path) -> None:
    _, ruined = run(forked, tmp_path, "huge_batch")
    assert ruined["accuracy"] < 0.5
    outcome, saved = run(forked, tmp_path, "huge_batch", options=("--skip-bad-steps",))
    assert saved["accuracy"] > 0.9
    assert [made["step"] for made in corrections(outcome)] == [150]


def test_without_a_bad_step_nothing_changes_in_the_training(forked: Server, tmp_path: Path) -> None:
    """Bit for bit, random numbers included."""
    _, plain = run(forked, tmp_path, "none")
    options = ("--skip-bad-steps", "--snapshot-every", "20", "--on-finding", "lower-lr")
    outcome, watched = run(forked, tmp_path, "none", options=options)
    assert corrections(outcome) == []
    assert watched == plain
    assert "divergence_ahead" not in outcome.rules_fired("info")


def test_no_more_corrections_than_allowed(forked: Server, tmp_path: Path) -> None:
    options = ("--skip-bad-steps", "--max-corrections", "1")
    outcome, result = run(forked, tmp_path, "nan_batch", "--bad-steps", "3", options=options)
    made = corrections(outcome)
    assert [each.get("refused", False) for each in made] == [False, True]
    assert math.isnan(result["losses"][-1])


@pytest.mark.parametrize("how", [(), ("--scheduler",)])
def test_a_lower_learning_rate_saves_a_training_that_diverges(
    forked: Server, tmp_path: Path, how: tuple[str, ...]
) -> None:
    _, ruined = run(forked, tmp_path, "unstable", *how, *STEPS)
    assert not ruined["losses"][-1] < 10
    outcome, saved = run(
        forked,
        tmp_path,
        "unstable",
        *how,
        *PAUSE,
        options=("--on-finding", "lower-lr", "--lr-factor", "0.3"),
    )
    assert outcome.code == 0, outcome.stderr
    made = corrections(outcome)
    assert made, outcome.stderr
    assert {each["action"] for each in made} == {"lower_lr"}
    assert saved["losses"][-1] < 0.2, made
    assert saved["rates"] == ruined["rates"], "what the program sees stays its own"
    rates = traindbg_json("get", outcome.run, "loop/learning_rate")
    assert min(_values(rates)) == pytest.approx(0.3 ** len(made) * min(saved["rates"]), rel=0.5)


def test_a_divergence_is_told_ahead_and_averted_while_the_loss_is_still_low(
    forked: Server,
    tmp_path: Path,
) -> None:
    """The finding comes before any other rule sees something, and the action before any damage."""
    outcome, ruined = run(forked, tmp_path, "warm_up", *STEPS)
    start = ruined["losses"][0]
    assert level(ruined, 499) > 5 * start
    findings = outcome.verdict["findings"]
    told = next(finding for finding in findings if finding["rule"] == "divergence_ahead")
    arrives = next(step for step in range(20, 500) if level(ruined, step) > start)
    assert told["severity"] == "warning"
    # How far ahead differs from machine to machine by the order of sums; 12 steps were seen.
    assert 20 < told["first_step"] <= arrives - 5, (told, arrives)
    assert outcome.verdict["causes"][0]["name"] == "learning_rate_too_high"

    options = ("--on-finding", "lower-lr", "--lr-factor", "0.3")
    outcome, saved = run(forked, tmp_path, "warm_up", *STEPS, "--pause", "0.01", options=options)
    assert outcome.code == 0, outcome.stderr
    journal = [
        json.loads(line) for line in (outcome.run / "actions.jsonl").read_text().splitlines()
    ]
    assert journal[0]["rule"] == "divergence_ahead", journal
    assert max(level(saved, step) for step in range(20, 500)) < start, journal
    assert saved["accuracy"] > 0.9


def level(result: dict[str, Any], step: int) -> float:
    """The loss around a step: the median of the last five."""
    return sorted(result["losses"][step - 4 : step + 1])[2]


def test_a_roll_back_saves_a_training_whose_weights_are_gone(
    forked: Server, tmp_path: Path
) -> None:
    _, ruined = run(forked, tmp_path, "nan_batch", *STEPS)
    assert ruined["accuracy"] < 0.5
    options = ("--on-finding", "roll-back", "--snapshot-every", "50")
    outcome, saved = run(forked, tmp_path, "nan_batch", *PAUSE, options=options)
    assert outcome.code == 0, outcome.stderr
    (made,) = corrections(outcome)
    assert (made["action"], made["to"]) == ("roll_back", 100)
    assert saved["accuracy"] > 0.9
    journal = [
        json.loads(line) for line in (outcome.run / "actions.jsonl").read_text().splitlines()
    ]
    assert [(line["action"], line["result"]) for line in journal] == [("roll-back", "done")]


def test_a_roll_back_saves_a_training_with_too_high_a_learning_rate(
    forked: Server, tmp_path: Path
) -> None:
    _, ruined = run(forked, tmp_path, "high_lr", *STEPS)
    assert ruined["accuracy"] < 0.5
    options = ("--on-finding", "roll-back", "--snapshot-every", "10", "--lr-factor", "0.1")
    outcome, saved = run(forked, tmp_path, "high_lr", *PAUSE, options=options)
    assert corrections(outcome), outcome.stderr
    assert saved["accuracy"] > 0.85, corrections(outcome)


def test_a_roll_back_without_a_snapshot_is_refused_and_told(forked: Server, tmp_path: Path) -> None:
    run_settings = tmp_path / "traindbg.toml"
    run_settings.write_text('on-finding = "roll-back"\nsnapshot-every = 5000\n')
    outcome, _ = run(
        forked, tmp_path, "high_lr", "--lr", "50", *PAUSE, options=("--config", str(run_settings))
    )
    first = corrections(outcome)[0]
    assert first["action"] == "roll_back"
    assert first.get("refused") or first["to"] == 0


def test_a_checkpoint_is_written_before_the_stop_and_can_be_loaded(
    forked: Server, tmp_path: Path
) -> None:
    outcome, result = run(
        forked, tmp_path, "huge_batch", *PAUSE, options=("--on-finding", "checkpoint-stop")
    )
    assert outcome.code == 90, outcome.stderr
    assert result is None, "it was stopped"
    path, _ = sorted((outcome.run / "checkpoints").iterdir(), reverse=True)
    content = torch.load(path, weights_only=True)
    assert path.name == f"step-{content['step']:08}.pt"
    assert content["step"] == outcome.steps()
    model = torch.nn.Sequential(
        *(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Dropout(0.1)),
        *(torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10)),
    )
    model.load_state_dict(content["models"][""])
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0, momentum=0.9)
    optimizer.load_state_dict(content["optimizers"][0])
    assert optimizer.param_groups[0]["lr"] == 0.1
    _, made = corrections(outcome)
    assert (made["action"], made["is_finite"]) == ("checkpoint", True)


@pytest.mark.parametrize("fault", ["huge_batch", "nan_batch"])
def test_a_training_goes_on_from_the_checkpoint_of_before_the_fault(
    forked: Server, tmp_path: Path, fault: str
) -> None:
    _, ruined = run(forked, tmp_path, fault)
    assert ruined["accuracy"] < 0.5
    outcome, _ = run(forked, tmp_path, fault, *PAUSE, options=("--on-finding", "checkpoint-stop"))
    good, bad = sorted((outcome.run / "checkpoints").iterdir())
    assert good.name == "good-00000100.pt", "ten steps or more before the fault, at step 150"
    _, resumed_too_late = run(forked, tmp_path, "none", "--resume", str(bad), "--steps", "200")
    assert not resumed_too_late["accuracy"] > 0.5
    _, resumed = run(forked, tmp_path, "none", "--resume", str(good), "--steps", "200")
    assert resumed["accuracy"] > 0.9
    told = corrections(outcome)[0]
    assert (told["action"], told["to"], told["path"]) == ("good_checkpoint", 100, str(good))


def test_a_checkpoint_of_before_the_fault_is_the_state_of_then(
    forked: Server, tmp_path: Path
) -> None:
    """Bit for bit what an undisturbed training has after so many steps, momentum included."""
    outcome, _ = run(
        forked, tmp_path, "huge_batch", *PAUSE, options=("--on-finding", "checkpoint-stop")
    )
    (good,) = (outcome.run / "checkpoints").glob("good-*.pt")
    content = torch.load(good, weights_only=True)
    saved = tmp_path / "undisturbed.pt"
    run(forked, tmp_path, "none", "--steps", str(content["step"]), "--save", str(saved))
    undisturbed = torch.load(saved, weights_only=True)
    for name, value in undisturbed["model"].items():
        assert torch.equal(content["models"][""][name], value), name
    (state,) = content["optimizers"]
    assert state.keys() == undisturbed["optimizer"].keys()
    assert state["param_groups"] == undisturbed["optimizer"]["param_groups"]
    for number, known in undisturbed["optimizer"]["state"].items():
        buffer = state["state"][number]["momentum_buffer"]
        assert torch.equal(buffer, known["momentum_buffer"]), number


EVALUATION_RULE = """
from traindbg.rules import Finding, Need, Rule


class BadEvaluation(Rule):
    def needs(self):
        return [Need("losses", mode="eval")]

    def on_step(self, step, sink):
        if step.step >= 20:
            sink.fire(Finding("the evaluation is bad"))
"""


def test_a_step_of_an_evaluation_is_not_taken_for_one_of_the_training(
    forked: Server, tmp_path: Path
) -> None:
    """Its 20th batch comes after step 80: what was before step 20 says nothing about it."""
    rule = tmp_path / "bad_evaluation.py"
    rule.write_text(EVALUATION_RULE)
    options = (
        "--on-finding",
        "checkpoint-stop",
        "--snapshot-every",
        "10",
        "--rule-python",
        str(rule),
    )
    outcome, _ = run(forked, tmp_path, "none", "--evaluate", "40", *PAUSE, options=options)
    assert outcome.code == 90, outcome.stderr
    good, made = corrections(outcome)
    assert (good["action"], good["refused"]) == ("good_checkpoint", True)
    assert "in an evaluation" in good["text"]
    assert "traindbg: asked to write a checkpoint, and stop the training" in outcome.stderr
    assert [path.name for path in (outcome.run / "checkpoints").iterdir()] == [
        Path(made["path"]).name
    ]


def test_a_checkpoint_and_a_refusal_are_not_shown_as_corrections(
    forked: Server, tmp_path: Path
) -> None:
    options = ("--on-finding", "checkpoint-stop", "--snapshot-every", "0")
    outcome, _ = run(forked, tmp_path, "huge_batch", *PAUSE, options=options)
    assert outcome.code == 90, outcome.stderr
    assert len(list((outcome.run / "checkpoints").iterdir())) == 1
    shown = traindbg("show", outcome.run).stdout
    assert not re.search(r"^ *corrected ", shown, re.M)
    refused = r"^ *refused +at step \d+: no checkpoint of before step \d+: there is no snapshot"
    assert re.search(refused, shown, re.M), shown
    written = r"^ *checkpoint +at step \d+: checkpoint after \d+ steps:"
    assert re.search(written, shown, re.M), shown


def test_bad_values_are_refused_before_anything_starts(forked: Server, tmp_path: Path) -> None:
    for option, value in (
        ("--lr-factor", "0"),
        ("--lr-factor", "2"),
        ("--snapshot-every", "-1"),
        ("--max-corrections", "-1"),
        ("--on-finding", "rollback"),
    ):
        outcome, result = run(forked, tmp_path, "none", options=(option, value))
        assert (outcome.code, result) == (2, None), (option, value, outcome.stderr)
        assert option in outcome.stderr


def _values(answer: Any) -> list[float]:
    """All numbers below `value` in what `get --json` prints."""
    if isinstance(answer, dict):
        own = [answer["value"]] if isinstance(answer.get("value"), (int, float)) else []
        return own + [v for each in answer.values() for v in _values(each)]
    return [v for each in answer for v in _values(each)] if isinstance(answer, list) else []


@pytest.mark.parametrize("action", ["stop", "checkpoint-stop", "roll-back"])
def test_a_dry_run_says_what_would_be_done_and_does_nothing(
    forked: Server, tmp_path: Path, action: str
) -> None:
    _, plain = run(forked, tmp_path, "nan_batch", *STEPS)
    options = ("--on-finding", action, "--dry-run", "--notify", f"file:{tmp_path / 'told.jsonl'}")
    outcome, result = run(
        forked, tmp_path, "nan_batch", *PAUSE, options=(*options, "--stop-grace", "0")
    )
    assert outcome.code == 0, outcome.stderr
    assert json.dumps(result) == json.dumps(plain)
    assert corrections(outcome) == []
    assert not (outcome.run / "checkpoints").exists()
    assert not (tmp_path / "told.jsonl").exists()
    assert "traindbg: dry run: would ask to " in outcome.stderr
    assert outcome.end["stopped_by_rule"] is False
    lines = (outcome.run / "actions.jsonl").read_text().splitlines()
    journal = [json.loads(line) for line in lines]
    assert {line["action"] for line in journal} == {action, "file"}
    assert {line["result"] for line in journal} == {"dry run"}


def test_a_dry_run_leaves_no_step_out_and_says_which_it_would(
    forked: Server, tmp_path: Path
) -> None:
    _, plain = run(forked, tmp_path, "huge_batch")
    options = ("--skip-bad-steps", "--dry-run")
    outcome, result = run(forked, tmp_path, "huge_batch", options=options)
    assert result == plain
    first = corrections(outcome)[0]
    assert (first["action"], first["step"], first["dry_run"]) == ("skip_step", 150, True)
    assert "dry run: step 150 would have been left out" in outcome.stderr
