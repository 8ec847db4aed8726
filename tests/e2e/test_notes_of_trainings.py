"""Notes that are no alarms, of real trainings: plateaus, copied rows, models that are too small.

Each has its healthy twin: the same script with another word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forked import Server

    # Of a script with a word, those of a rule.
    Findings = Callable[[str, str, str], list[dict[str, Any]]]

PLATEAU = """
import sys

import torch
from torch import nn
from torch.nn import functional as F

kind = sys.argv[1]
torch.manual_seed(0)
truth = torch.randn(20, 4)
is_of_amounts = kind.startswith("noise_floor")
if is_of_amounts:
    model = nn.Linear(20, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
else:
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.6 if kind == "rate_too_large" else 0.05)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1500, 0.1)
for step in range({"noise_floor": 2400, "noise_floor_ended": 450}.get(kind, 1000)):
    x = torch.randn(64, 20)
    if is_of_amounts:
        loss = F.mse_loss(model(x), x @ truth / 4 + torch.randn(64, 4))
    else:
        loss = F.cross_entropy(model(x), (x @ truth).argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
"""

NOISE = """
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

kind = sys.argv[1]
torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 10))
if kind == "momentum":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4 if kind == "small_steps" else 0.02)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
for step in range(1000):
    rows = torch.randint(0, 1500, (8,))
    optimizer.zero_grad()
    F.cross_entropy(model(x[rows]), y[rows]).backward()
    optimizer.step()
    if kind == "decays":
        schedule.step()
"""

COPIES = """
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

kind = sys.argv[1]
torch.manual_seed(0)
x, truth = torch.randn(600, 20), torch.randn(20, 4)
y = (x @ truth).argmax(1)
rows = torch.arange(600)
if kind == "exported_twice":
    rows = rows.repeat(2)
elif kind == "rare_class_copied":
    rows = torch.cat([rows, (y == 0).nonzero().flatten().repeat(3)])
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for _ in range(3):
    for inputs, labels in DataLoader(TensorDataset(x[rows], y[rows]), 32, shuffle=True):
        if kind == "copies_augmented":
            inputs = inputs + 0.1 * torch.randn_like(inputs)
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
"""

RANK = """
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

kind = sys.argv[1]
torch.manual_seed(0)
x = torch.tensor(load_digits().images, dtype=torch.float32)
x = (x - x.mean()) / x.std()
model = nn.Sequential(
    nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 32)
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)


def view(batch):
    shift = torch.randint(-1, 2, (2,)).tolist()
    return torch.roll(batch, shift, (1, 2)) + 0.3 * torch.randn_like(batch)


def off_diagonal(matrix):
    return matrix[~torch.eye(len(matrix), dtype=torch.bool)]


def even(z):
    return (z - z.mean(0)) / (z.std(0) + 1e-5)


for step in range(300):
    batch = x[torch.randint(len(x), (128,))]
    a, b = model(view(batch)), model(view(batch))
    if kind.startswith("vicreg"):
        loss = 25 * F.mse_loss(a, b)
        for z in (a, b):
            loss = loss + 12.5 * torch.relu(1 - (z.var(0) + 1e-4).sqrt()).mean()
            if kind == "vicreg":
                loss = loss + off_diagonal(z.T.cov()).square().sum() / 32
    else:
        both = even(a).T @ even(b) / 128
        loss = (both.diagonal() - 1).square().sum()
        if kind == "barlow":
            loss = loss + 0.02 * off_diagonal(both).square().sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

UNDERFIT = """
import sys

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

kind = sys.argv[1]
torch.manual_seed(0)
digits = load_digits()
order = torch.randperm(len(digits.data))
x = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
y = torch.tensor(digits.target)[order]
if kind == "noisy_labels":
    y = torch.where(torch.rand(len(y)) < 0.5, torch.randint(0, 10, (len(y),)), y)
width = 2 if kind == "two_units" else 64
model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
if kind == "noisy_labels":
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, weight_decay=0.01)
for step in range(1200):
    rows = torch.randint(0, 1400, (64,))
    optimizer.zero_grad()
    F.cross_entropy(model(x[rows]), y[rows]).backward()
    optimizer.step()
    if step % 100 == 99:
        model.eval()
        with torch.no_grad():
            F.cross_entropy(model(x[1400:]), y[1400:])
        model.train()
"""

# The margin of boosted trees is calibrated by a layer; td.save is given the importances.
TREES = """
import sys

import numpy as np
import torch
from sklearn.tree import DecisionTreeRegressor
from torch import nn
from torch.nn import functional as F

import traindbg as td

kind = sys.argv[1]
draws = np.random.default_rng(0)
x = draws.normal(size=(400, 5))
if kind == "constant_column":
    x[:, 3] = 1
weights = np.array([2, 1.5, 1, 1, 1])
y = (x @ weights > 1).astype(np.float32)
margin, importance = np.zeros(400), np.zeros(5)
layer = nn.Linear(1, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(30):
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    tree.fit(x, y - 1 / (1 + np.exp(-margin)))
    margin += 0.5 * tree.predict(x)
    importance += tree.feature_importances_
    scores = layer(torch.tensor(margin, dtype=torch.float32)[:, None])[:, 0]
    loss = F.binary_cross_entropy_with_logits(scores, torch.tensor(y))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    for name, value in zip("abcde", importance / importance.sum(), strict=True):
        td.save(f"feature_importance/gain/{name}", float(value))
"""


@pytest.fixture
def findings(tmp_path: Path, forked: Server) -> Findings:
    def findings(script: str, kind: str, rule: str) -> list[dict[str, Any]]:
        path = tmp_path / "train.py"
        path.write_text(script)
        outcome = forked.run(tmp_path / "runs", path, kind, options=("--no-report",))
        assert outcome.code == 0, outcome.stderr
        return [finding for finding in outcome.verdict["findings"] if finding["rule"] == rule]

    return findings


@pytest.mark.parametrize(
    ("kind", "what", "before"),
    [
        ("noise_floor", "was 0.001 then and is 0.0001", 1200),
        ("rate_too_large", "was 0.6 all that time", 500),
    ],
)
def test_a_training_that_stands_still_is_a_note_with_its_step(
    findings: Findings, kind: str, what: str, before: int
) -> None:
    (found,) = findings(PLATEAU, kind, "plateau")
    assert found["severity"] == "info"
    assert found["first_step"] < before
    assert what in found["message"]


@pytest.mark.parametrize("kind", ["noise_floor_ended", "falls"])
def test_a_training_that_ends_in_time_has_no_plateau(findings: Findings, kind: str) -> None:
    assert findings(PLATEAU, kind, "plateau") == []


@pytest.mark.parametrize("kind", ["momentum", "adam"])
def test_steps_that_undo_each_other_are_a_note(findings: Findings, kind: str) -> None:
    (found,) = findings(NOISE, kind, "update_noise")
    assert found["severity"] == "info"
    assert "decay to zero" in found["fix"]


@pytest.mark.parametrize("kind", ["small_steps", "decays"])
def test_steps_that_lead_somewhere_are_left_alone(findings: Findings, kind: str) -> None:
    found = findings(NOISE, kind, "update_noise")
    assert [one for one in found if one["state"] == "firing"] == []


@pytest.mark.parametrize("kind", ["exported_twice", "rare_class_copied"])
def test_copied_rows_are_a_note(findings: Findings, kind: str) -> None:
    (found,) = findings(COPIES, kind, "duplicated_rows")
    assert (found["severity"], found["key"]) == ("info", "copies")


@pytest.mark.parametrize("kind", ["copies_augmented", "each_once"])
def test_rows_that_come_once_are_left_alone(findings: Findings, kind: str) -> None:
    assert findings(COPIES, kind, "duplicated_rows") == []


@pytest.mark.parametrize("kind", ["vicreg_without_covariance", "diagonal_alone"])
def test_values_that_say_the_same_are_a_note(findings: Findings, kind: str) -> None:
    (found,) = findings(RANK, kind, "rank_collapse")
    assert (found["severity"], found["layer"]) == ("info", "model")


@pytest.mark.parametrize("kind", ["vicreg", "barlow"])
def test_values_that_are_pushed_apart_are_left_alone(findings: Findings, kind: str) -> None:
    assert findings(RANK, kind, "rank_collapse") == []


def test_a_model_that_is_too_small_is_a_note_of_its_own(findings: Findings) -> None:
    (found,) = findings(UNDERFIT, "two_units", "underfit")
    assert (found["severity"], found["key"]) == ("info", "training")
    assert "The inputs tell more" in found["message"]


@pytest.mark.parametrize("kind", ["wide", "noisy_labels"])
def test_a_model_that_fits_and_labels_that_are_noise_are_left_alone(
    findings: Findings, kind: str
) -> None:
    assert findings(UNDERFIT, kind, "underfit") == []


def test_a_feature_that_no_tree_uses_is_a_note(findings: Findings) -> None:
    (found,) = findings(TREES, "constant_column", "low_feature_importance")
    assert (found["severity"], found["places"]) == ("info", 1)
    assert "1 of 5 features (20 %)" in found["message"]
    assert found["tensor"] == "custom/feature_importance/gain/d"


def test_features_that_are_used_are_left_alone(findings: Findings) -> None:
    assert findings(TREES, "all_used", "low_feature_importance") == []
