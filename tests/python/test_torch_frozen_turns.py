"""Optimizers that go on stepping what was frozen, and frozen weights that were loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td


class Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Linear(4, 2)
        self.discriminator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))


def turns(run_dir: Path, name: str = "discriminator.0") -> list[float]:
    run = td.Run(run_dir)
    full = f"loop/frozen_turn/{name}"
    return [float(value) for value in run.scalars(full)[1]] if full in run else []


@pytest.mark.parametrize("first", ["discriminator", "generator"])
@pytest.mark.parametrize("how", ["lost", "set back", "rests"])
def test_a_discriminator_that_is_frozen_in_its_own_turn(
    tmp_path: Path, first: str, how: str
) -> None:
    torch.manual_seed(0)
    model = Pair()
    generator, discriminator = model.generator, model.discriminator
    opt_g = torch.optim.Adam(generator.parameters(), lr=0.01)
    opt_d = torch.optim.Adam(discriminator.parameters(), lr=0.01)

    def turn_of_discriminator(step: int) -> None:
        if how == "set back" or (how == "rests" and step in (0, 1, 4, 5, 6)):
            discriminator.requires_grad_(True)
        fake = generator(torch.randn(16, 4))
        loss = F.softplus(-discriminator(torch.randn(16, 2))).mean()
        loss = loss + F.softplus(discriminator(fake)).mean()
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()

    def turn_of_generator() -> None:
        discriminator.requires_grad_(False)
        loss = F.softplus(-discriminator(generator(torch.randn(16, 4)))).mean()
        opt_g.zero_grad()
        loss.backward()
        opt_g.step()

    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for step in range(8):
            if first == "generator" and step > 0:
                turn_of_generator()
            turn_of_discriminator(step)
            if first == "discriminator":
                turn_of_generator()
    found = turns(tmp_path / "run")
    if how == "lost":
        assert found == [4.0] * 7
    elif how == "set back":
        assert found == []
    else:
        assert 0.0 in found
        assert 4.0 in found


def test_a_part_that_is_frozen_for_a_while_and_steps_with_the_others(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizers = [torch.optim.SGD(model[i].parameters(), lr=0.01) for i in (0, 2)]
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for step in range(8):
            if step == 2:
                model[0].requires_grad_(False)
            for optimizer in optimizers:
                optimizer.zero_grad()
            model(torch.randn(16, 4)).square().mean().backward()
            for optimizer in optimizers:
                optimizer.step()
    assert turns(tmp_path / "run", "0") == []


@pytest.mark.parametrize("how", ["loaded", "no key matches", "drawn again"])
def test_frozen_weights_that_look_as_drawn(tmp_path: Path, how: str) -> None:
    """Weights that a short training left nearly as they were drawn."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    checkpoint = nn.Linear(16, 32).state_dict()
    if how == "no key matches":
        checkpoint = {f"module.{name}": value for name, value in checkpoint.items()}
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        model[0].load_state_dict(checkpoint, strict=False)
        if how == "drawn again":
            model[0].reset_parameters()
        model[0].requires_grad_(False)
        optimizer = torch.optim.SGD(model[2].parameters(), lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(16, 16)).square().mean().backward()
            optimizer.step()
    run = td.Run(tmp_path / "run")
    name = "loop/frozen_fresh_modules/0"
    assert (name in run) == (how != "loaded")


@pytest.mark.parametrize("is_held", [True, False])
def test_whether_an_optimizer_holds_what_is_frozen(tmp_path: Path, is_held: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 2))
    model[0].requires_grad_(False)
    trained = model if is_held else model[2]
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        for step in range(30):
            if step == 12:
                model[0].requires_grad_(True)
            optimizer.zero_grad()
            model(torch.randn(16, 16)).square().mean().backward()
            optimizer.step()
    run = td.Run(tmp_path / "run")
    assert set(run["loop/frozen_fresh_held"].series("value")[1]) == {float(is_held)}
    assert set(run["loop/frozen_fresh_modules"].series("value")[1]) == {0.0}


@pytest.mark.parametrize("how", ["fresh", "loaded", "one of three"])
def test_biases_of_frozen_matrices(tmp_path: Path, how: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2)
    )
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        if how == "loaded":
            model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()})
        for name, p in model.named_parameters():
            frozen = ["0.weight"] if how == "one of three" else ["0.weight", "2.weight"]
            p.requires_grad_(name not in frozen)
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(trained, lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            model(torch.randn(16, 16)).square().mean().backward()
            optimizer.step()
    run = td.Run(tmp_path / "run")
    assert ("loop/frozen_fresh_modules/0" in run) == (how == "fresh")
    if how == "fresh":
        assert set(run["loop/frozen_fresh_modules/0"].series("value")[1]) == {2.0}
        assert set(run["loop/frozen_fresh_biased"].series("value")[1]) == {2.0}
        assert set(run["loop/frozen_fresh_held"].series("value")[1]) == {0.0}


class _Own(nn.Module):
    """Has a use of its own for the word."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 32)
        self.requires_grad = True  # type: ignore[assignment]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x)
        return y


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("attribute", {1.0}),
        ("freezes nothing", None),
        ("frozen again", None),
        ("attribute, then method", {1.0, 0.0}),
        ("method", None),
        ("own", None),
        ("same word", None),
    ],
)
def test_an_attribute_of_a_module_sets_nothing_free(
    tmp_path: Path, how: str, told: set[float] | None
) -> None:
    torch.manual_seed(0)
    part = _Own() if how == "own" else nn.Sequential(nn.Linear(16, 32), nn.ReLU())
    model = nn.Sequential(part, nn.Linear(32, 2))
    part.requires_grad_(how in ("freezes nothing", "same word", "frozen again"))
    with td.watch(model, run_dir=tmp_path / "run", supervise=False):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(30):
            if step == 2 and how == "method":
                part.requires_grad_(True)
            elif step == 2 and how != "own":
                part.requires_grad = how != "freezes nothing"  # type: ignore[assignment]
            if step == 12 and how == "frozen again":  # the attribute says what was
                part.requires_grad_(False)
            if step == 12 and how == "attribute, then method":
                part.requires_grad_(True)
            optimizer.zero_grad()
            model(torch.randn(16, 16)).square().mean().backward()
            optimizer.step()
    run = td.Run(tmp_path / "run")
    names = [name for name in run.names() if name.startswith("loop/said_to_train")]
    if told is None:
        assert names == []
        return
    counts = [
        v
        for name in names
        if name.split("/")[1] == "said_to_train"
        for v in run[name].series("value")[1]
    ]
    assert set(counts) == told
    assert "loop/said_to_train/0" in names
    assert set(run["loop/said_to_train_parameters"].series("value")[1]) == {2.0}
