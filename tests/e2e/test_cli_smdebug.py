"""`traindbg check` of runs that the SageMaker Debugger client recorded."""

from __future__ import annotations

import shutil
from pathlib import Path

from trainings import traindbg, traindbg_json

GOLDEN = Path(__file__).resolve().parents[1] / "data" / "smdebug"


def test_a_diverging_training_of_the_originals_is_found() -> None:
    verdict = traindbg_json("check", GOLDEN / "torch_diverging", "--json", codes=(1,))
    (finding,) = verdict["findings"]
    assert finding["rule"] == "non_finite"
    assert finding["first_step"] == 1
    assert finding["tensor"] == "CrossEntropyLoss_output_0"
    assert verdict["damaged_places"] == 0


def test_its_healthy_twin_is_clean() -> None:
    verdict = traindbg_json("check", GOLDEN / "torch_raw", "--json")
    assert verdict["findings"] == []
    judged = {rule["rule"] for rule in verdict["rules"] if rule["state"] == "clean"}
    assert {"non_finite", "exploding_gradient", "dead_relu"} <= judged


def test_reductions_alone_are_judged() -> None:
    verdict = traindbg_json("check", GOLDEN / "torch_reductions", "--json")
    judged = {rule["rule"] for rule in verdict["rules"] if rule["state"] == "clean"}
    assert {"non_finite", "exploding_gradient"} <= judged


def test_damage_is_told_and_the_rest_is_judged(tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(GOLDEN / "torch_diverging", run)
    (run / "events/000000000000/000000000000_worker_0.tfevents").unlink()
    done = traindbg("check", run)
    assert done.returncode == 1
    assert "non_finite" in done.stdout
    assert "damage in 1 place was skipped" in done.stderr


def test_other_directories_are_still_refused(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    done = traindbg("check", tmp_path)
    assert done.returncode == 2
    assert "not a run" in done.stderr
