"""What a run could not hold, of an unchanged script under `traindbg run`: the program says it."""

from __future__ import annotations

from pathlib import Path

from trainings import run_training, traindbg, traindbg_json

TRAINING = """
import torch
import traindbg as td
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
model.register_buffer("codes", torch.eye(3).to_sparse_csr())
model.register_buffer("other", torch.eye(3).to_sparse_csr())
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(6):
    optimizer.zero_grad()
    nn.functional.mse_loss(model(torch.randn(16, 6)), torch.randn(16, 1)).backward()
    td.log("per class", torch.ones(4))
    td.log("good", step)
    optimizer.step()
"""


def test_what_cannot_be_read_is_shown_with_its_reason(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAINING)
    options = ("--collect", "buffers", "--every", "1")
    outcome = run_training(tmp_path / "runs", script, options=options)
    layout = "its layout is torch.sparse_csr, of which nothing is read"
    given = "traindbg.log was given a tensor of shape [4] (float32); it takes a number"
    assert outcome.stderr.count(layout) == 2, "when it is met, and in the summary"
    assert outcome.stderr.count(given) >= 1

    shown = " ".join(traindbg("show", outcome.run).stdout.split())
    assert f"not seen buffer/codes, buffer/other: {layout}" in shown
    assert f"not seen metric/per class: {given}" in shown
    told = traindbg_json("show", outcome.run)
    assert [each["tensor"] for each in told["tensors_skipped"]] == ["buffer/codes", "buffer/other"]
    assert told["failures"] == told["parts_off"] == []
    assert "buffer/codes, buffer/other: its layout" in outcome.report

    got = traindbg("get", outcome.run, "buffer/codes")
    assert got.returncode == 0
    assert f"no step matches: not captured: {layout}" in got.stderr
    got = traindbg("get", outcome.run, "metric/per class")
    assert got.returncode == 2
    assert f"metric/per class: not captured: {given}" in got.stderr
    points = traindbg_json("get", outcome.run, "metric/good")["workers"][0]["points"]
    assert [point["value"] for point in points] == [0, 1, 2, 3, 4, 5]
