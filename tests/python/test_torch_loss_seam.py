"""Losses that compare angles as if they did not begin anew, told by their graphs."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.losses.seam import ignores_seam


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """What `atan2` is given, and angles all around."""
    torch.manual_seed(0)
    return torch.randn(64, 2, requires_grad=True), (2 * torch.rand(64) - 1) * math.pi


def angle(x: torch.Tensor) -> torch.Tensor:
    return torch.atan2(x[:, 1], x[:, 0])


def test_differences_of_angles() -> None:
    x, t = data()
    assert ignores_seam(F.mse_loss(angle(x), t)) == "mse_loss"
    assert ignores_seam(F.mse_loss(t, angle(x))) == "mse_loss"
    assert ignores_seam(3 * F.huber_loss(angle(x), t) + x.square().mean()) == "huber_loss"
    assert ignores_seam(F.smooth_l1_loss(angle(x).unsqueeze(1), t[:, None])) == "smooth_l1_loss"
    assert ignores_seam(F.l1_loss(angle(x), t)) == ""
    assert ignores_seam(((t - angle(x)) ** 2).mean().sqrt()) == ""
    assert ignores_seam((angle(x) - t).square().sum() / len(t)) == ""
    assert ignores_seam(F.mse_loss(torch.view_as_complex(x).angle(), t)) == "mse_loss"


def test_in_other_units() -> None:
    x, t = data()
    degrees = torch.rad2deg(t)
    assert ignores_seam(F.mse_loss(torch.rad2deg(angle(x)), degrees)) == "mse_loss"
    assert ignores_seam(F.l1_loss(angle(x) * (180 / math.pi), degrees)) == ""
    assert ignores_seam(F.mse_loss(angle(x) / math.pi, t / math.pi)) == "mse_loss"
    turn = torch.rad2deg(angle(x)) % 360
    assert ignores_seam(F.mse_loss(turn, degrees % 360)) == "mse_loss"


def test_differences_that_begin_anew() -> None:
    x, t = data()
    gap = angle(x) - t
    assert ignores_seam((1 - gap.cos()).mean()) is None
    around = torch.atan2(gap.sin(), gap.cos())
    assert ignores_seam(around.square().mean()) is None
    assert ignores_seam(F.mse_loss(around, torch.zeros_like(t))) is None
    within = (gap + math.pi) % (2 * math.pi) - math.pi
    assert ignores_seam(within.abs().mean()) is None
    assert ignores_seam(F.mse_loss(within, torch.zeros_like(t))) is None
    assert ignores_seam(torch.minimum(gap.abs(), 2 * math.pi - gap.abs()).mean()) is None
    shorter = torch.where(gap.abs() > math.pi, 2 * math.pi - gap.abs(), gap.abs())
    assert ignores_seam(shorter.mean()) is None
    assert ignores_seam(F.mse_loss(angle(x), angle(x).detach() - within.detach())) is None


def test_other_angles_and_numbers() -> None:
    x, t = data()
    assert ignores_seam(F.mse_loss(angle(x), t / 2)) is None  # no seam among them
    assert ignores_seam(F.mse_loss(angle(x), t + 100)) is None
    assert ignores_seam(F.mse_loss(x[:, 0] * 3, t)) is None
    assert ignores_seam(F.mse_loss(angle(x) * x[:, 0], t)) is None
    assert ignores_seam(F.mse_loss(angle(x), angle(x.flip(0)))) is None  # both have a gradient
    assert ignores_seam(torch.zeros(())) is None


@pytest.mark.parametrize("wraps", [True, False])
def test_told(tmp_path: Path, wraps: bool) -> None:
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), 0.01)
        for _ in range(12):
            x = torch.randn(32, 4)
            forecast, wanted = angle(model(x)), torch.atan2(x[:, 0], x[:, 1])
            loss = F.mse_loss(forecast, wanted) if wraps else (forecast - wanted).cos().neg().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    names = td.Run(tmp_path / "run").names()
    assert ("loop/loss_ignores_seam/mse_loss" in names) == wraps
