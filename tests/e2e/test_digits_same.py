"""traindbg changes no bit of a training: losses, weights, optimizer and random state."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from forked import Server
from trainings import DIGITS, Outcome, run_plain, run_training

# Trains as the example does and then says, as hashes, everything that training has left behind.
SCRIPT = """
import hashlib
import pickle
import random
import runpy

import numpy as np
import torch

digits = runpy.run_path({digits!r})
build_model = digits["build_model"]
sgd = torch.optim.SGD
kept = {{}}


def keep_model(fault):
    kept["model"] = build_model(fault)
    return kept["model"]


class KeptSGD(sgd):
    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        kept["optimizer"] = self


def digest(values):
    return hashlib.sha256(pickle.dumps(values)).hexdigest()


def arrays(tensors):
    return [(name, tensor.numpy().tobytes()) for name, tensor in sorted(tensors.items())]


random.seed(7)
np.random.seed(7)
digits["main"].__globals__["build_model"] = keep_model
torch.optim.SGD = KeptSGD
digits["main"]()
state = kept["optimizer"].state_dict()["state"]
print("weights", digest(arrays(kept["model"].state_dict())))
print("optimizer", digest(arrays({{str(k): v["momentum_buffer"] for k, v in state.items()}})))
print("torch", digest(torch.get_rng_state().numpy().tobytes()))
print("numpy", digest(np.random.get_state()[1].tobytes()))
print("python", digest(random.getstate()))
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "hashed.py"
    file.write_text(SCRIPT.format(digits=str(DIGITS)))
    return file


def check(observed: Outcome, plain: subprocess.CompletedProcess[str]) -> None:
    assert plain.returncode == 0, plain.stderr
    assert observed.code == 0, observed.stderr
    assert observed.steps() > 100  # it really was observed
    assert observed.stdout == plain.stdout
    assert len(re.findall(r"[0-9a-f]{64}", observed.stdout)) == 5


def test_a_training_gives_the_same_bits(tmp_path: Path, script: Path) -> None:
    check(run_training(tmp_path / "runs", script), run_plain(script))


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("--workers", "2", "--epochs", "3"), id="data_loader_workers"),
        pytest.param(("--fault", "no_zero_grad", "--epochs", "5"), id="no_zero_grad"),
        pytest.param(("--fault", "learning_rate", "--epochs", "5"), id="not_finite"),
    ],
)
def test_another_training_gives_the_same_bits(
    tmp_path: Path, script: Path, arguments: tuple[str, ...], forked: Server
) -> None:
    observed = forked.run(tmp_path / "runs", script, *arguments)
    check(observed, forked.plain(script, *arguments))


def test_the_hash_would_notice_one_other_bit(script: Path, forked: Server) -> None:
    one = forked.plain(script, "--epochs", "2", "--seed", "1").stdout
    assert one == forked.plain(script, "--epochs", "2", "--seed", "1").stdout
    other = forked.plain(script, "--epochs", "2", "--seed", "2").stdout
    weights = [re.search(r"weights (\w+)", text) for text in (one, other)]
    assert weights[0] is not None
    assert weights[1] is not None
    assert weights[0].group(1) != weights[1].group(1)


def test_data_loader_workers_leave_no_run_of_their_own(tmp_path: Path, forked: Server) -> None:
    outcome = forked.run(tmp_path, DIGITS, "--workers", "2", "--epochs", "2")
    assert outcome.code == 0, outcome.stderr
    assert [entry.name for entry in outcome.run.iterdir() if entry.is_dir()] == ["w0000"]
