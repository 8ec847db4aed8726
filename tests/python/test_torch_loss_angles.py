"""Losses that are nothing but cosines, told by their graphs, and directions that become one."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.losses.angles import AWAY, ONE_WAY, cosines_in
from traindbg.hooks.torch.losses.collapse import turn_of


def compares_directions(loss: torch.Tensor) -> bool:
    return cosines_in(loss) == ONE_WAY


def turns_away(loss: torch.Tensor) -> bool:
    return cosines_in(loss) == AWAY


def vectors() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(12, 6, requires_grad=True), torch.randn(12, 6, requires_grad=True)


def unit(x: torch.Tensor) -> torch.Tensor:
    return x / x.norm(dim=1, keepdim=True)


def test_cosines_with_a_gradient_on_both_sides() -> None:
    a, b = vectors()
    cosine = F.cosine_similarity(a, b, dim=1)
    assert compares_directions(-cosine.mean())
    assert compares_directions(1 - cosine.mean())
    assert compares_directions(-(cosine.mean() / 2 + F.cosine_similarity(b, a).mean() * 0.5))
    assert compares_directions(2 - 2 * (F.normalize(a) * F.normalize(b)).sum(1).mean())
    assert compares_directions(-(unit(a) * unit(b)).sum())
    assert compares_directions(-cosine.mean() * torch.tensor(1024.0))  # a GradScaler's


def test_squared_distances_of_unit_vectors_are_cosines() -> None:
    a, b = vectors()
    assert compares_directions((unit(a) - unit(b)).pow(2).sum(1).mean())
    assert compares_directions(((F.normalize(a) - F.normalize(b)) ** 2).mean())
    assert compares_directions(F.mse_loss(F.normalize(a), F.normalize(b)))
    assert not compares_directions(-(unit(a) - unit(b)).square().mean())
    assert not compares_directions((unit(a) - b).square().mean())
    assert not compares_directions((unit(a) - unit(b)).pow(4).mean())
    assert not compares_directions(torch.sub(unit(a), unit(b), alpha=-1).square().mean())
    assert not compares_directions((F.normalize(a, dim=0) - F.normalize(b, dim=0)).square().mean())
    assert not compares_directions((a / a.norm() - b / b.norm()).square().sum())
    assert not compares_directions((unit(a) - unit(b).detach()).square().mean())
    assert not compares_directions(F.mse_loss(unit(a), unit(b).detach()))
    away = (1 - (unit(a) - unit(b.flip(0))).square().sum(1)).clamp(min=0).mean()
    assert not compares_directions((unit(a) - unit(b)).square().mean() + away)


def test_signs_and_factors_of_cosines() -> None:
    a, b = vectors()
    cosine = F.cosine_similarity(a, b, dim=1)
    weights = torch.arange(12.0)
    both = torch.tensor([1.0, -1.0] * 6)
    assert compares_directions(-1 * cosine.mean())
    assert compares_directions(cosine.mean() / -4)
    assert compares_directions(torch.sub(2, cosine, alpha=2).mean())
    assert compares_directions((weights * (1 - cosine)).sum() / weights.sum())
    assert compares_directions((cosine * -weights).mean())
    assert not compares_directions(cosine.mean())
    assert not compares_directions((cosine * weights).mean())
    assert not compares_directions((cosine * both).mean())
    assert not compares_directions((both * (1 - cosine)).mean())
    assert not compares_directions((cosine * 0).mean())
    other = F.cosine_similarity(a, b.roll(1, 0), dim=1)
    assert not compares_directions(other.mean() - cosine.mean())
    assert not compares_directions((1 - cosine).mean() + other.mean() * 0.5)
    assert not compares_directions(torch.add(-cosine, other, alpha=0.5).mean())
    assert not compares_directions(torch.add(-cosine, -other, alpha=-0.5).mean())
    assert not compares_directions((1 / (1 + cosine)).mean())


def test_packed_factors_are_left_to_their_hooks() -> None:
    a, b = vectors()
    unpacked = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        return tensor

    def unpack(tensor: torch.Tensor) -> torch.Tensor:
        unpacked.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = -(F.cosine_similarity(a, b, dim=1) * torch.arange(12.0)).mean()
    assert not compares_directions(loss)
    assert not unpacked


def test_other_losses() -> None:
    a, b = vectors()
    cosine = F.cosine_similarity(a, b, dim=1)
    assert not compares_directions(-F.cosine_similarity(a, b.detach(), dim=1).mean())
    assert not compares_directions(-cosine.mean() + (1 - a.std(0)).relu().mean())
    assert not compares_directions((a - b).square().mean())
    assert not compares_directions(a.mean())
    assert not compares_directions(a.detach().mean())
    scores = F.normalize(a) @ F.normalize(b).t() / 0.1
    assert not compares_directions(F.cross_entropy(scores, torch.arange(12)))
    assert not compares_directions(-(a * b).sum(1).mean())


def test_a_similarity_to_what_is_given_that_is_lowered() -> None:
    a, b = vectors()
    given = b.detach()
    assert turns_away(F.cosine_similarity(a, given, dim=-1).mean())
    assert turns_away((F.normalize(a) * F.normalize(given)).sum(1).mean())
    assert turns_away(1 + F.cosine_similarity(given, a).mean() / 2)
    assert not turns_away(-F.cosine_similarity(a, given).mean())
    assert not turns_away((1 - F.cosine_similarity(a, given)).mean())
    assert not turns_away(2 - 2 * (F.normalize(a) * F.normalize(given)).sum(1).mean())
    assert not turns_away(F.cosine_similarity(a, b).mean())  # to keep two apart
    assert not turns_away((F.cosine_similarity(a, given) - 0.2).relu().mean())
    assert not turns_away((F.normalize(a) * given).sum(1).mean())  # scores
    assert not turns_away(
        F.cosine_similarity(a, given).mean() - F.cosine_similarity(a, given.flip(0)).mean()
    )


def test_directions_know_no_length() -> None:
    torch.manual_seed(0)
    one = torch.randn(1, 8)
    assert float(turn_of(torch.rand(64, 1) * one)) == pytest.approx(0, abs=1e-5)
    assert float(turn_of(torch.randn(64, 200))) == pytest.approx(1, abs=0.05)
    assert float(turn_of(torch.zeros(8, 4))) == 0


class Views(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.layer(x), self.layer(x + 0.1)


@pytest.mark.parametrize("is_detached", [False, True])
def test_the_turn_is_told_where_both_sides_have_a_gradient(
    tmp_path: Path, is_detached: bool
) -> None:
    torch.manual_seed(1)
    model = Views()
    x = torch.randn(16, 6)
    expected = float(turn_of(model(x)[0].detach()))
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for _ in range(4):
            a, b = model(x)
            loss = -F.cosine_similarity(a, b.detach() if is_detached else b, dim=1).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    run = td.Run(tmp_path / "run")
    name = "loop/output_turn/model.0"
    assert (name in run.names()) == (not is_detached)
    if not is_detached:
        assert run.scalars(name).values[-1] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("kind", ["both", "detached", "detached_first", "beside_another"])
def test_the_turn_is_told_of_cosine_embedding_loss(tmp_path: Path, kind: str) -> None:
    torch.manual_seed(1)
    model = Views()
    x = torch.randn(16, 6)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for _ in range(4):
            a, b = model(x)
            loss = F.cosine_embedding_loss(
                a.detach() if kind == "detached_first" else a,
                b.detach() if kind == "detached" else b,
                torch.ones(16),
            )
            if kind == "beside_another":
                loss = loss + F.mse_loss(a, torch.zeros_like(a))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert ("loop/output_turn/model.0" in td.Run(tmp_path / "run").names()) == (kind == "both")
