"""A loop with Accelerate under `traindbg run`: what is found of it, and what is not changed."""

from __future__ import annotations

import sys

from frameworks import EXAMPLES, check_same
from trainings import traindbg

import traindbg as td


def test_a_loop_is_found_and_trains_the_same(tmp_path) -> None:
    outcome, run = check_same("accelerate", tmp_path)
    assert run.steps().tolist() == list(range(66))
    assert run.scalars("metric/accuracy", "eval").values.size == 3
    assert f"accuracy {run.scalars('metric/accuracy', 'eval').values[-1]:.3f}" in outcome.stdout
    assert run.names("^metric/") == ["metric/accuracy"]


def test_two_processes_are_two_workers(tmp_path) -> None:
    script = EXAMPLES / "accelerate" / "train.py"
    done = traindbg(
        *("run", "--quiet", "--run-dir", tmp_path / "run", "--"),
        *(sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", 2),
        *(script, "--epochs", 1),
    )
    assert done.returncode == 0, done.stderr
    run = td.Run(tmp_path / "run")
    assert run.workers == [0, 1]
    assert run.steps().tolist() == list(range(11))
    for worker in run.workers:
        assert run.worker_meta(worker)["model_type"] == "Sequential"
        assert run.scalars("loss/cross_entropy", worker=worker).steps.size == 11
        assert run.scalars("metric/accuracy", "eval", worker).values.size == 1
