"""Whether the first and the last channel of images are exchanged in evaluations."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import traindbg as td

FACTS = (
    "channels_difference",
    "channels_difference_evaluated",
    "channels_apart",
    "channels_apart_exchanged",
)


def photographs(count, size=12):
    """Redder than blue, each in its own light."""
    tint = torch.tensor([0.3, 0.0, -0.2]) + 0.3 * torch.randn(count, 3)
    return tint[..., None, None] + torch.randn(count, 3, size, size)


def told(run_dir, x, *, batch=100, steps=3, passes=3, training=False):
    """What is told of evaluations of `x`, after so many batches of 32 photographs each."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(x[0].numel(), 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["train_val_mismatch"]):
        for _ in range(passes + 1):
            model.train()
            for _ in range(steps):
                optimizer.zero_grad()
                model(photographs(32, x.shape[-1])).square().mean().backward()
                optimizer.step()
            model.train(training)
            with torch.no_grad():
                for part in x.split(batch):
                    model(part)
    run = td.Run(run_dir)
    if f"loop/{FACTS[0]}" not in run.names():
        return []
    columns = [run[f"loop/{fact}"].series("value")[1] for fact in FACTS]
    return list(zip(*columns, strict=True))


@pytest.mark.parametrize("batch", [50, 300])
def test_exchanged_channels_are_alike_the_other_way_round(batch, tmp_path):
    torch.manual_seed(0)
    found = told(tmp_path / "run", photographs(300).flip(1), batch=batch)
    assert len(found) == 3
    for ours, theirs, apart, exchanged in found:
        assert ours == pytest.approx(0.5, abs=0.1)
        assert theirs == pytest.approx(-0.5, abs=0.1)
        assert apart > 100
        assert exchanged < 15


def test_channels_in_order_are_alike_as_they_are(tmp_path):
    torch.manual_seed(0)
    for _, _, apart, exchanged in told(tmp_path / "run", photographs(300)):
        assert apart < 15
        assert exchanged > 100


def test_a_few_evaluations_are_looked_at(tmp_path):
    torch.manual_seed(0)
    assert len(told(tmp_path / "run", photographs(80), passes=6)) == 3


def test_few_images_and_what_are_none_are_not_looked_at(tmp_path):
    torch.manual_seed(0)
    assert told(tmp_path / "few", photographs(40)) == []
    assert told(tmp_path / "soon", photographs(80), steps=1, passes=1) == []
    assert told(tmp_path / "small", photographs(80, size=4)) == []
    assert told(tmp_path / "training", photographs(80), training=True) == []
