"""Losses that are ratios of signal to distortion and rise with them, told by their graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import traindbg as td
from traindbg.hooks.torch.losses.ratios import lowers_signal_ratio


def data() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(6, 40, requires_grad=True), torch.randn(6, 40)


def projected(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return (x * t).sum(-1, keepdim=True) / (t.square().sum(-1, keepdim=True) + 1e-8) * t


def si_sdr(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    x, t = x - x.mean(-1, keepdim=True), t - t.mean(-1, keepdim=True)
    wanted = projected(x, t)
    ratio = wanted.square().sum(-1) / ((x - wanted).square().sum(-1) + 1e-8)
    return 10 * torch.log10(ratio + 1e-8)


def snr(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return 10 * torch.log10(t.pow(2).sum(-1) / ((t - x).pow(2).sum(-1) + 1e-8))


def test_ratios_that_are_lowered() -> None:
    x, t = data()
    assert lowers_signal_ratio(si_sdr(x, t).mean())
    assert lowers_signal_ratio(0.5 * (si_sdr(x, t).mean() + si_sdr(x, t.flip(0)).mean()))
    assert lowers_signal_ratio(snr(x, t).mean())
    wanted = projected(x, t)
    norms = wanted.norm(dim=-1) / (x - wanted).norm(dim=-1).clamp_min(1e-8)
    assert lowers_signal_ratio((20 * norms.log10()).mean())
    powers = wanted.square().sum(-1).log10() - (wanted - x).square().sum(-1).log10()
    assert lowers_signal_ratio((10 * powers).mean())
    dot = (x * t).sum(-1, keepdim=True)
    other = dot * t / t.square().sum(-1, keepdim=True)
    off = x - other
    ratio = (other * other).sum(-1) / (off * off).sum(-1)
    assert lowers_signal_ratio(ratio.log10().mean())
    orders = torch.stack([si_sdr(x, t), si_sdr(x, t.flip(0))])
    assert lowers_signal_ratio(orders.min(0).values.mean())


def test_ratios_that_are_raised() -> None:
    x, t = data()
    wanted = projected(x, t)
    assert not lowers_signal_ratio(-si_sdr(x, t).mean())
    assert not lowers_signal_ratio(-snr(x, t).mean())
    assert not lowers_signal_ratio((30 - si_sdr(x, t)).mean())
    assert not lowers_signal_ratio((-10 * si_sdr(x, t)).mean())
    inverse = (x - wanted).square().sum(-1) / wanted.square().sum(-1)
    assert not lowers_signal_ratio(inverse.log10().mean())
    powers = (x - wanted).square().sum(-1).log10() - wanted.square().sum(-1).log10()
    assert not lowers_signal_ratio(powers.mean())
    orders = torch.stack([-si_sdr(x, t), -si_sdr(x, t.flip(0))])
    assert not lowers_signal_ratio(orders.min(0).values.mean())
    assert not lowers_signal_ratio(si_sdr(x, t)[:3].mean() - si_sdr(x, t)[3:].mean())


def test_other_losses() -> None:
    x, t = data()
    w = torch.randn(6, 40, requires_grad=True)
    assert not lowers_signal_ratio((x - t).square().mean().log())
    # Spread that is wanted: of one's own mean, of two trained means.
    own = (x - x.mean(-1, keepdim=True)).square().sum(-1)
    assert not lowers_signal_ratio(-own.log().mean())
    assert not lowers_signal_ratio((x.square().sum(-1) / own).log().mean())
    between = (x.mean(0) - w.mean(0)).square().sum()
    assert not lowers_signal_ratio((own.sum() / between).log())
    assert not lowers_signal_ratio(si_sdr(x, t).mean() + (x - t).square().mean())
    # A normal distribution's density, with a spread of its own.
    assert not lowers_signal_ratio(((x - t).square() / w.exp() + w).mean())
    assert not lowers_signal_ratio(torch.log_softmax(x, 1).mean())
    assert not lowers_signal_ratio(si_sdr(x, w).mean())  # both are trained
    assert not lowers_signal_ratio(torch.zeros(()))


@pytest.mark.parametrize("sign", [1, -1])
def test_told(tmp_path: Path, sign: int) -> None:
    torch.manual_seed(0)
    model = nn.Linear(40, 40)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(12):
            t = torch.randn(4, 40)
            loss = sign * si_sdr(model(t + 0.1 * torch.randn(4, 40)), t).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    names = td.Run(tmp_path / "run").names()
    assert ("loop/loss_lowers_signal_ratio" in names) == (sign > 0)
