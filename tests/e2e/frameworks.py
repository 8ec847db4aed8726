"""Examples of frameworks under `traindbg run`, and beside it."""

from __future__ import annotations

from pathlib import Path

from trainings import ROOT, Outcome, run_plain, run_training

import traindbg as td

EXAMPLES = ROOT / "examples"
OFFLINE = {"HF_HUB_OFFLINE": "1"}


def own_words(stderr: str) -> list[str]:
    """Lines that traindbg says in the training's process."""
    return [line for line in stderr.splitlines() if line.startswith("traindbg:")]


def check_same(framework: str, tmp_path: Path, *arguments: object) -> tuple[Outcome, td.Run]:
    """Runs the example with and without traindbg."""
    script = EXAMPLES / framework / "train.py"
    extra = (*arguments, "--out", tmp_path / "out") if framework == "transformers" else arguments
    plain = run_plain(script, *extra, **OFFLINE)
    assert plain.returncode == 0, plain.stderr
    outcome = run_training(tmp_path / "runs", script, *extra, options=("--quiet",), **OFFLINE)
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout.splitlines()[-1].startswith("weights ")
    assert outcome.stdout.splitlines()[-1] == plain.stdout.splitlines()[-1]
    assert not own_words(outcome.stderr)
    run = td.Run(outcome.run)
    assert run.is_complete
    assert not [e for e in run.events if e["kind"] in ("hook_error", "exception")]
    return outcome, run


def check_stopped(framework: str, tmp_path: Path, *arguments: object) -> Outcome:
    """Runs the example until a rule stops it."""
    script = EXAMPLES / framework / "train.py"
    options = ("--on-finding", "stop", "--quiet")
    outcome = run_training(tmp_path / "runs", script, *arguments, options=options, **OFFLINE)
    assert outcome.code == 90, outcome.stderr
    assert outcome.end["stopped_by_rule"] is True
    assert "Traceback" not in outcome.stderr
    # Where the judge was late, the finding may be over before the training stops.
    said = [line for line in own_words(outcome.stderr) if " is over, " not in line]
    assert len(said) == 1, said
    assert "asked to stop" in said[0]
    run = td.Run(outcome.run)
    assert run.is_complete
    assert not [e for e in run.events if e["kind"] in ("hook_error", "exception")]
    return outcome
