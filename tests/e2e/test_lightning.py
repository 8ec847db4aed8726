"""Lightning's Trainer under `traindbg run`: what is found of it, and what is not changed."""

from __future__ import annotations

import pytest
from frameworks import check_same, check_stopped


def test_a_fit_is_found_and_trains_the_same(tmp_path) -> None:
    arguments = ("--accumulate", 3, "--clip", 0.05, "--precision", "bf16-mixed")
    outcome, run = check_same("lightning", tmp_path, "--epochs", 2, *arguments)
    assert "steps 30" in outcome.stdout
    assert run.steps().tolist() == list(range(30))
    assert run.worker_meta()["model_type"] == "Digits"
    assert run.scalars("loss/cross_entropy", "eval").steps.size >= 2 * 2
    accuracy = run.scalars("metric/val_accuracy", "eval").values
    assert accuracy.size == 2
    assert f"accuracy {accuracy[-1]:.3f}" in outcome.stdout
    assert run.scalars("metric/train_loss").steps.size >= 2
    # As the optimizer uses them, which computes them inside of its step.
    norms = [run[name].values("l2")[0] for name in run.names("^gradient/")]
    assert sum(norm**2 for norm in norms) ** 0.5 == pytest.approx(0.05, rel=1e-3)


def test_a_stop_leaves_the_trainer_in_good_order(tmp_path) -> None:
    outcome = check_stopped("lightning", tmp_path, "--epochs", 500, "--learning-rate", 50)
    assert "TrainerStatus.INTERRUPTED" in outcome.stdout
