"""Weights that are kept by `state_dict()` alone are the model's own; copies of them are not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from forked import Server

    Verdict = Callable[[str, str], dict[str, Any]]  # of two pieces of the script

# Evaluated each ten steps, and past its best after a hundred: `KEEP` stands where the training is
# at its best, `END` after its loop.
SCRIPT = """
import copy
import os

import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.nn import functional as F

os.chdir(os.path.dirname(__file__))
torch.manual_seed(0)
bunch = load_diabetes()
x = torch.tensor((bunch.data - bunch.data.mean(0)) / bunch.data.std(0)).float()
y = torch.tensor((bunch.target - bunch.target.mean()) / bunch.target.std()).float()[:, None]
x, y, x_val, y_val = x[:120], y[:120], x[120:], y[120:]


def make():
    return nn.Sequential(
        nn.Linear(10, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
        nn.Linear(64, 1),
    )


model, other = make(), make()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)


def steps(count, rate=None):
    model.train()
    for _ in range(count):
        rows = torch.randint(0, 120, (32,))
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()


def evaluate():
    model.eval()
    with torch.no_grad():
        return F.mse_loss(model(x_val), y_val).item()


first = model.state_dict()
best, kept = float("inf"), None
for epoch in range(20):
    steps(10)
    loss = evaluate()
    if loss < best:
        best = loss
        KEEP
END
"""


@pytest.fixture
def verdict(tmp_path: Path, forked: Server) -> Verdict:
    def verdict(keep: str, end: str) -> dict[str, Any]:
        path = tmp_path / "train.py"
        path.write_text(SCRIPT.replace("KEEP", keep or "pass").replace("END", end))
        runs = Path(tempfile.mkdtemp(dir=tmp_path))
        outcome = forked.run(runs, path, options=("--no-report",), TRAINDBG_STRICT="1")
        assert outcome.code == 0, outcome.stderr
        return outcome.verdict

    return verdict


def found(verdict: dict[str, Any], rule: str) -> list[dict[str, Any]]:
    return [finding for finding in verdict["findings"] if finding["rule"] == rule]


def line_of(text: str) -> int:
    """Of a piece in the script."""
    return SCRIPT[: SCRIPT.index(text)].count("\n") + 1


@pytest.mark.parametrize(
    "keep",
    [
        "kept = model.state_dict()",
        "kept = dict(model.state_dict())",
        "kept = copy.copy(model.state_dict())",
        "kept = {k: v for k, v in model.state_dict().items()}",
        "kept = {k: v.cpu() for k, v in model.state_dict().items()}",
        "kept = {k: v.detach().cpu() for k, v in model.state_dict().items()}",
        "kept = {k: v.data for k, v in model.state_dict().items() if 'weight' in k or 'bias' in k}",
    ],
)
def test_weights_that_are_not_copied_are_not_kept(verdict: Verdict, keep: str) -> None:
    strict = "strict=False" if "if" in keep else "strict=True"
    told = verdict(keep, f"model.load_state_dict(kept, {strict})")
    (finding,) = found(told, "best_weights_not_kept")
    assert finding["severity"] == "warning"
    assert finding["key"] == "loaded"
    assert f"(train.py:{line_of('KEEP')})" in finding["message"]
    assert "after step 200 was given" in finding["message"]
    (source,) = finding["sources"]
    assert (source["what"], source["line"]) == ("weights_taken", line_of("KEEP"))
    assert told["causes"][0]["name"] == "best_weights_not_kept"
    ((overfit),) = found(told, "overfit")
    assert overfit["severity"] == "warning"


@pytest.mark.parametrize(
    ("keep", "end"),
    [
        ("kept = copy.deepcopy(model.state_dict())", "model.load_state_dict(kept)"),
        (
            "kept = {k: v.clone() for k, v in model.state_dict().items()}",
            "model.load_state_dict(kept)",
        ),
        ("torch.save(model.state_dict(), 'b.pt')", "model.load_state_dict(torch.load('b.pt'))"),
    ],
)
@pytest.mark.parametrize("again", ["", "; evaluate()"])
def test_overfitting_is_a_note_where_the_best_weights_are_put_back(
    verdict: Verdict, keep: str, end: str, again: str
) -> None:
    told = verdict(keep, end + again)
    assert found(told, "best_weights_not_kept") == []
    (overfit,) = found(told, "overfit")
    assert (overfit["severity"], overfit["state"]) == ("info", "resolved")
    assert "other weights were loaded" in overfit["message"]


@pytest.mark.parametrize(
    "end",
    [
        "model.load_state_dict(model.state_dict())",
        "last = model.state_dict(); evaluate(); model.load_state_dict(last)",
        "other.load_state_dict(first)",
        "other.load_state_dict(model.state_dict()); other.load_state_dict(other.state_dict())",
        "torch.save(model.state_dict(), 'last.pt'); model.load_state_dict(torch.load('last.pt'))",
        "mine = model.state_dict(); model.load_state_dict(copy.deepcopy(kept)); evaluate(); "
        "steps(0); model.load_state_dict(mine)",
        "torch.save({'model': model.state_dict(), 'epoch': 20}, 'last.pt')",
        "torch.save(first, 'live.pt')",
        "torch.save(kept, 'best.pt')",
    ],
)
def test_what_is_loaded_or_saved_at_once_or_of_another_model_is_left_alone(
    verdict: Verdict, end: str
) -> None:
    told = verdict("kept = copy.deepcopy(model.state_dict())", end)
    assert found(told, "best_weights_not_kept") == []
    if "kept)" not in end:  # the model is left with the weights of the last step
        (overfit,) = found(told, "overfit")
        assert overfit["severity"] == "warning"


def test_swapped_weights_are_those_of_the_last_step_in_the_end(verdict: Verdict) -> None:
    end = (
        "mine = copy.deepcopy(model.state_dict()); model.load_state_dict(kept); evaluate(); "
        "model.load_state_dict(mine)"
    )
    told = verdict("kept = copy.deepcopy(model.state_dict())", end)
    (overfit,) = found(told, "overfit")
    assert overfit["severity"] == "warning"


@pytest.mark.parametrize("save", ["torch.save(kept, 'b.pt')", "torch.save({'m': kept}, 'b.pt')"])
def test_a_file_of_weights_that_were_not_copied_is_told_of(verdict: Verdict, save: str) -> None:
    (finding,) = found(verdict("kept = model.state_dict()", save), "best_weights_not_kept")
    assert (finding["severity"], finding["key"]) == ("warning", "saved")
    assert f"(train.py:{line_of('KEEP')})" in finding["message"]


def test_weights_that_are_taken_anew_for_each_file_are_left_alone(verdict: Verdict) -> None:
    keep = "kept = model.state_dict(); torch.save(kept, 'best.pt')"
    assert found(verdict(keep, ""), "best_weights_not_kept") == []


def test_a_state_that_is_saved_after_each_epoch_shows_what_there_is(verdict: Verdict) -> None:
    keep = "kept = kept or {'model': model.state_dict()}"
    end = "for epoch in range(3):\n    steps(10)\n    torch.save(kept, f'{epoch}.pt')"
    assert found(verdict(keep, end), "best_weights_not_kept") == []


def test_a_range_test_does_not_go_back(verdict: Verdict) -> None:
    told = verdict("", "model.load_state_dict(first); steps(20)")
    (finding,) = found(told, "best_weights_not_kept")
    assert finding["step"] == 200
    assert "200 steps earlier, before the first step" in finding["message"]
    assert f"(train.py:{line_of('first = ')})" in finding["message"]


def test_weights_that_nothing_has_changed_are_no_matter(verdict: Verdict) -> None:
    told = verdict("", "kept = other.state_dict(); steps(5); other.load_state_dict(kept)")
    assert found(told, "best_weights_not_kept") == []


def test_a_fused_optimizer_leaves_no_version_and_is_heard_all_the_same(verdict: Verdict) -> None:
    end = "model.load_state_dict(kept)"
    for steps in (5, 0):
        anew = f"steps({steps}); kept = model.state_dict(); steps({steps})"
        fused = "optimizer = torch.optim.Adam(model.parameters(), lr=5e-3, fused=True)"
        told = verdict("", f"{fused}; steps(20); {anew}; {end}")
        assert len(found(told, "best_weights_not_kept")) == (steps > 0)
