"""Losses that are coefficients of overlap and rise with it, told by their graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.losses.overlap import lowers_overlap


def data() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(6, 1, 8, 8, requires_grad=True), (torch.rand(6, 1, 8, 8) > 0.5).float()


def dice(p: torch.Tensor, t: torch.Tensor, smooth: float = 1.0) -> torch.Tensor:
    p, t = p.flatten(1), t.flatten(1)
    return (2 * (p * t).sum(1) + smooth) / (p.sum(1) + t.sum(1) + smooth)


def test_coefficients_that_are_lowered() -> None:
    x, t = data()
    p = x.sigmoid()
    assert lowers_overlap(dice(p, t).mean())
    assert lowers_overlap(0.5 * dice(p, t).sum())
    assert lowers_overlap(dice(F.logsigmoid(x).exp(), t).mean())
    assert lowers_overlap(dice(p, t).mean().log())
    both = (p * t).sum()
    assert lowers_overlap(both / (p.sum() + t.sum() - both + 1))  # Jaccard
    squares = (p**2).sum() + t.sum()
    assert lowers_overlap(2 * both / squares.clamp_min(1e-6))
    missed = (t * (1 - p)).sum()
    assert lowers_overlap((both + 1) / (both + 0.3 * p.sum() + 0.7 * missed + 1))  # Tversky


def test_of_several_classes() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 3, 8, 8, requires_grad=True)
    t = F.one_hot(torch.randint(0, 3, (4, 8, 8)), 3).movedim(-1, 1).float()
    p = x.softmax(1)
    above, below = (p * t).sum((0, 2, 3)), p.sum((0, 2, 3)) + t.sum((0, 2, 3))
    assert lowers_overlap((2 * above / below)[1:].mean())
    assert not lowers_overlap(1 - (2 * above / below)[1:].mean())
    assert lowers_overlap((dice(p[:, 1:2], t[:, 1:2]) + dice(p[:, 2:], t[:, 2:])).mean())


def test_coefficients_that_are_raised() -> None:
    x, t = data()
    p = x.sigmoid()
    assert not lowers_overlap(1 - dice(p, t).mean())
    assert not lowers_overlap(-dice(p, t).mean())
    assert not lowers_overlap((1 - dice(p, t)).mean())
    assert not lowers_overlap(-dice(p, t).mean().log())
    assert not lowers_overlap(dice(p, t).mean() / -2)
    assert not lowers_overlap(dice(p, t)[:3].mean() - dice(p, t)[3:].mean())


def test_other_losses() -> None:
    x, t = data()
    p = x.sigmoid()
    assert not lowers_overlap(F.binary_cross_entropy_with_logits(x, t) + dice(p, t).mean())
    assert not lowers_overlap(dice(p, p.flip(0)).mean())  # of two maps, which are to be apart
    assert not lowers_overlap((p * t).sum() / t.sum())
    assert not lowers_overlap(((p * t).sum() + 1) / (x.square().sum() + 1))
    assert not lowers_overlap(dice(x, t).mean())
    assert not lowers_overlap(dice(p, -t).mean())
    assert not lowers_overlap((p - t).square().mean())
    assert not lowers_overlap(torch.zeros(()))


@pytest.mark.parametrize("sign", [1, -1])
def test_told(tmp_path: Path, sign: int) -> None:
    torch.manual_seed(0)
    model = nn.Conv2d(1, 1, 3, padding=1)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(12):
            x = torch.randn(4, 1, 8, 8)
            loss = sign * dice(model(x).sigmoid(), (x > 0).float()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    names = td.Run(tmp_path / "run").names()
    assert ("loop/loss_lowers_overlap" in names) == (sign > 0)
