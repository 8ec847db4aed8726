"""Runs that the SageMaker Debugger client recorded, judged, imported and exported again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
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


def test_an_imported_run_is_judged_the_same(tmp_path: Path) -> None:
    summary = traindbg_json(
        "import", GOLDEN / "torch_diverging", "--to", tmp_path / "ours", "--json"
    )
    assert summary["steps"] == 13
    assert summary["problems"] == []
    there = traindbg_json("check", GOLDEN / "torch_diverging", "--json", codes=(1,))
    here = traindbg_json("check", tmp_path / "ours", "--json", codes=(1,))
    # Moments are stored as float32: the last digits of numbers may differ, and nothing else.
    (one,), (other,) = here["findings"], there["findings"]
    for mine, theirs in zip(one.pop("evidence"), other.pop("evidence"), strict=True):
        assert mine["name"] == theirs["name"]
        assert mine["value"] == pytest.approx(theirs["value"], rel=1e-6)
    assert one == other


def test_export_and_import_give_the_same_values_back(tmp_path: Path) -> None:
    traindbg_json("import", GOLDEN / "two_workers", "--to", tmp_path / "ours", "--json")
    summary = traindbg_json(
        "export", tmp_path / "ours", "--format", "smdebug", "--to", tmp_path / "theirs", "--json"
    )
    assert summary["items"] > 0
    assert (tmp_path / "theirs" / "training_job_end.ts").exists()
    traindbg_json("import", tmp_path / "theirs", "--to", tmp_path / "back", "--json")
    for tensor, statistic in (("loss", "value"), ("fc.weight", "mean"), ("fc.weight", "l2")):
        one, two = (
            traindbg_json("get", tmp_path / run, tensor, "--stat", statistic, "--json")["workers"]
            for run in ("ours", "back")
        )
        assert one == two
        assert [len(worker["points"]) for worker in one] == [4, 3]


def test_a_selection_is_exported_alone(tmp_path: Path) -> None:
    traindbg_json("import", GOLDEN / "torch_raw", "--to", tmp_path / "ours", "--json")
    options = ["--table", "statistics", "--collection", "gradients", "--statistic", "l2,max"]
    out = tmp_path / "out"
    summary = traindbg_json(
        "export", tmp_path / "ours", "--format", "smdebug", "--to", out, *options, "--json"
    )
    assert summary["items"] == 4 * 4 * 2  # steps, gradients, reductions
    assert len(list(out.glob("index/*/*.json"))) == 4


def test_what_is_there_is_never_replaced(tmp_path: Path) -> None:
    traindbg_json("import", GOLDEN / "devices", "--to", tmp_path / "ours", "--json")
    (tmp_path / "mine").mkdir()
    for options in ([], ["--force"]):
        done = traindbg(
            "export", tmp_path / "ours", "--format", "smdebug", "--to", tmp_path / "mine", *options
        )
        assert done.returncode != 0
        assert done.stderr
    refused = traindbg("import", GOLDEN / "devices", "--to", tmp_path / "other", "--map", "x=loss")
    assert refused.returncode != 0
    assert "--map" in refused.stderr
    assert not (tmp_path / "other").exists()
