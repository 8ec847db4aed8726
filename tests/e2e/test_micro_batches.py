"""Gradient accumulation under `traindbg run`: all micro-batches, gradients before clipping."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from trainings import PROGRAM, SECONDS, clean_environment

import traindbg as td

# Imports by name, as many scripts have them.
TRAINING = """
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import clip_grad_norm_, clip_grad_value_

torch.manual_seed(0)
model = nn.Sequential(
    nn.Embedding(20, 16),
    nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1, batch_first=True),
    nn.Linear(16, 20),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(12):
    for micro in range(3):
        words = torch.randint(0, 20, (8, 12))
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(words)
        loss = cross_entropy(logits.float().flatten(0, 1), words.flatten()) / 3
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    clip_grad_value_(model.parameters(), 0.01)
    clip_grad_norm_(model.parameters(), 0.05)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
print(loss.item(), sum(p.double().sum().item() for p in model.parameters()))
"""
COLLECT = "predictions,labels,gradients,gradients_before,attention_maps,outputs"


def start(directory: Path, *before: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, sys.executable, "-c", TRAINING],
        cwd=directory,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )


def test_an_unchanged_script_is_captured_whole_and_trains_the_same(tmp_path: Path) -> None:
    plain = start(tmp_path)
    assert plain.returncode == 0, plain.stderr
    options = ("--run-dir", "run", "--micro-batches", "all", "--collect", COLLECT, "--every", "4")
    done = start(tmp_path, str(PROGRAM), "run", *options, "--")
    assert done.returncode == 0, done.stderr
    assert plain.stdout.strip() in done.stdout
    run = td.Run(tmp_path / "run")
    assert run.steps().tolist() == list(range(12))
    for step in (run.step(0), run.step(8)):
        assert step is not None
        statistics = {name: sample.statistics for name, sample in step.tensors.items()}
        for mark in ("", "@2", "@3"):
            assert f"loss{mark}" in step.scalars
            assert statistics[f"label/cross_entropy{mark}"].count == 96
            assert statistics[f"prediction/cross_entropy{mark}"].count == 96 * 20
            assert statistics[f"attention/1.self_attn{mark}"].count == 8 * 12 * 12
            assert f"output/2{mark}" in statistics
        assert not [name for name in statistics if name.endswith("@4")]
        assert step.scalars["gradient_before/loss_scale"] == 1024
        assert statistics["gradient_before/2.weight"].l2 > 1
        assert statistics["gradient/2.weight"].l2 <= 0.05
    # Rules and the report know one loss of each name.
    assert {outcome["rule"] for outcome in run.outcomes if outcome["state"] == "clean"}
    assert not [finding for finding in run.findings if "@" in str(finding["tensor"])]
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "loss@2" not in page
