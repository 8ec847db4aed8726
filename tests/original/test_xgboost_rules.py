"""Trainings of XGBoost, recorded by the SageMaker Debugger client, and what the rules say of them.

Each rule that judges trees has a real training with the fault and its healthy twin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn import datasets

TRAINING = Path(__file__).with_name("xgboost_training.py")
EXE = os.environ.get("TRAINDBG_EXE") or str(Path(sys.executable).with_name("traindbg"))
Table = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass
class Training:
    data: Table
    parameters: dict[str, Any]
    rounds: int = 20
    collections: list[str] = field(default_factory=lambda: ["metrics"])
    start: int = 0


def cancer() -> Table:
    x, y = datasets.load_breast_cancer(return_X_y=True)
    return x, y.astype(float)


def noisy_cancer() -> Table:
    """A fifth of the labels are others."""
    x, y = cancer()
    wrong = np.random.default_rng(0).random(len(y)) < 0.2
    return x, np.where(wrong, 1 - y, y)


def leaking_cancer() -> Table:
    """A column that was computed from the diagnosis: the number of a file that is made later."""
    x, y = cancer()
    return np.column_stack([x[:, :5], 1000 * y + np.random.default_rng(0).random(len(y))]), y


def diabetes() -> Table:
    x, y = datasets.load_diabetes(return_X_y=True)
    return x, y


def joined_diabetes() -> Table:
    """With three columns of a table that was joined by a key that never fits: all missing."""
    x, y = diabetes()
    return np.column_stack([x[:, :6], np.full((len(x), 3), np.nan), x[:, 6:]]), y


def wines() -> Table:
    x, y = datasets.load_wine(return_X_y=True)
    return x, y.astype(float)


def wines_of_two_tasters() -> Table:
    """Of whom one takes many of the second grower's for the third's."""
    x, y = wines()
    taken = (y == 1) & (np.random.default_rng(0).random(len(y)) < 0.4)
    return x, np.where(taken, 2.0, y)


def rare_cancer() -> Table:
    """Twenty of the malignant ones are left."""
    x, y = cancer()
    keep = (y == 1) | (np.cumsum(y == 0) <= 20)
    return np.tile(x[keep], (2, 1)), np.tile(y[keep], 2)


BINARY = {"objective": "binary:logistic", "eval_metric": "logloss", "max_depth": 3, "eta": 0.3}
CLASSES = {"objective": "multi:softmax", "eval_metric": "mlogloss", "max_depth": 3, "num_class": 3}
NUMBERS = {"objective": "reg:squarederror", "eval_metric": "rmse", "max_depth": 3}
PAIRS = {
    "TreeDepth": (
        Training(noisy_cancer(), {**BINARY, "max_depth": 12}, collections=["trees"]),
        Training(noisy_cancer(), BINARY, collections=["trees"]),
    ),
    "FeatureImportanceOverweight": (
        Training(leaking_cancer(), BINARY, collections=["feature_importance"]),
        Training(cancer(), BINARY, collections=["feature_importance"]),
    ),
    "low_feature_importance": (
        Training(joined_diabetes(), NUMBERS, 30, ["feature_importance"]),
        Training(diabetes(), NUMBERS, 30, ["feature_importance"]),
    ),
    "Confusion": (
        Training(wines_of_two_tasters(), CLASSES, 40, ["predictions", "labels"], start=30),
        Training(wines(), CLASSES, 40, ["predictions", "labels"], start=30),
    ),
    "ClassImbalance": (
        Training(rare_cancer(), BINARY, collections=["predictions", "labels"]),
        Training(cancer(), BINARY, collections=["predictions", "labels"]),
    ),
    "LossNotDecreasing": (
        Training(cancer(), {**BINARY, "eta": 1e-6}, 40),
        Training(cancer(), {**BINARY, "eta": 0.05}, 40),
    ),
}


def recorded(python: str, folder: Path, training: Training) -> Path:
    """Trains on two thirds of the rows, in an order drawn by chance."""
    x, y = training.data
    order = np.random.default_rng(1).permutation(len(y))
    cut = 2 * len(y) // 3
    parts = {"": order[:cut], "_val": order[cut:]}
    data = {f"x{part}": x[rows] for part, rows in parts.items()}
    data |= {f"y{part}": y[rows] for part, rows in parts.items()}
    np.savez(folder / "data.npz", **data)
    settings = {
        "parameters": training.parameters,
        "rounds": training.rounds,
        "collections": training.collections,
        "start": training.start,
    }
    command = [python, TRAINING, folder / "data.npz", folder / "run", json.dumps(settings)]
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "SMDEBUG_LOG_LEVEL": "off"},
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return folder / "run"


def checked(run: Path, rule: str) -> tuple[str, list[dict[str, Any]]]:
    done = subprocess.run(
        [EXE, "check", str(run), "--rules", rule, "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    verdict = json.loads(done.stdout)
    (outcome,) = verdict["rules"]
    return outcome["state"], verdict["findings"]


@pytest.mark.parametrize("rule", PAIRS)
def test_a_rule_finds_its_fault_and_leaves_the_twin_alone(
    original: str, tmp_path: Path, rule: str
) -> None:
    for training, state in zip(PAIRS[rule], ("fired", "clean"), strict=True):
        folder = tmp_path / state
        folder.mkdir()
        found, findings = checked(recorded(original, folder, training), rule)
        assert found == state, findings
        assert {each["rule"] for each in findings} <= {rule}
