"""The Trainer of transformers under `traindbg run`: what is found, and what is not changed."""

from __future__ import annotations

import pytest
from frameworks import check_same, check_stopped


def test_a_training_is_found_and_trains_the_same(tmp_path) -> None:
    arguments = ("--accumulate", 2, "--smoothing", 0.1, "--out", tmp_path / "out")
    outcome, run = check_same("transformers", tmp_path, "--epochs", 2, *arguments)
    assert "steps 20" in outcome.stdout
    assert run.steps().tolist() == list(range(20))
    assert run.worker_meta()["model_type"] == "GPT2LMHeadModel"
    assert run.worker_meta()["optimizers"][0]["type"] == "AdamW"
    evaluated = run.scalars("loss/label_smoother", "eval").values
    trained = run.scalars("loss/label_smoother").values
    assert evaluated.size == 2 * 8
    # The trainer divides that of a training batch by the targets of two; we do not.
    assert trained[9] == pytest.approx(evaluated[:8].mean(), rel=0.3)
    assert run.scalars("metric/eval_loss", "eval").values.size == 2
    assert run.scalars("metric/grad_norm").steps.tolist() == [10]


def test_a_stop_leaves_the_trainer_in_good_order(tmp_path) -> None:
    arguments = ("--optimizer", "sgd", "--learning-rate", 2000, "--clip", 0)
    outcome = check_stopped(
        "transformers", tmp_path, "--epochs", 500, *arguments, "--out", tmp_path / "out"
    )
    assert "steps " in outcome.stdout  # said in a `finally`
