"""One of several optimizers that never steps, while another one does."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from torch import nn

import traindbg as td


def told(run_dir: Path, first_step: int | None, *, is_loaded: bool = False) -> list[float]:
    """What the looks at 60 steps tell; the encoder's optimizer steps from `first_step` on."""
    torch.manual_seed(0)
    encoder, decoder = nn.Linear(8, 64), nn.Linear(64, 2)
    model = nn.Sequential(encoder, nn.Tanh(), decoder)
    slow = torch.optim.Adam(encoder.parameters(), lr=1e-2)
    fast = torch.optim.Adam(decoder.parameters(), lr=1e-2)
    with td.watch(
        model, fast, run_dir=run_dir, supervise=False, rules=["parameters_not_in_optimizer"]
    ):
        if is_loaded:
            encoder.load_state_dict(nn.Linear(8, 64).state_dict())
        for step in range(60):
            slow.zero_grad()
            fast.zero_grad()
            nn.functional.mse_loss(model(torch.randn(16, 8)), torch.randn(16, 2)).backward()
            if first_step is not None and step >= first_step:
                slow.step()
            fast.step()
    run = td.Run(run_dir)
    names = run.names("unstepped_optimizer")
    return [] if not names else [float(x) for x in run.scalars(names[0]).values]


def test_an_optimizer_that_never_steps_is_told_at_every_look(run_dir: Path) -> None:
    found = told(run_dir, None)
    assert len(found) > 5
    assert set(found) == {2.0}


@pytest.mark.parametrize("first_step", [0, 2])
def test_an_optimizer_that_steps_is_not_told(run_dir: Path, first_step: int) -> None:
    assert told(run_dir, first_step) == []


def test_weights_that_were_loaded_may_be_meant_to_stay(run_dir: Path) -> None:
    assert told(run_dir, None, is_loaded=True) == []


def test_an_optimizer_that_begins_later_is_taken_back(run_dir: Path) -> None:
    found = told(run_dir, 30)
    names = td.Run(run_dir).names("unstepped_optimizer")
    assert found[0] == 2
    assert td.Run(run_dir).scalars(names[-1]).values[-1] == 0


TRAINDBG = Path(sysconfig.get_path("scripts")) / "traindbg"
PROGRAM = """\
import torch
from torch import nn


class Encoder(nn.Sequential):
    pass


class Decoder(nn.Sequential):
    pass


class Adam(torch.optim.Adam):
    __hash__ = None  # as one with an __eq__ of its own has none


torch.manual_seed(0)
encoder, decoder = {encoder}(nn.Linear(8, 64)), Decoder(nn.Linear(64, 2))
model = nn.Sequential(encoder, nn.Tanh(), decoder)
slow = {optimizer}(encoder.parameters(), lr=1e-2)
fast = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for step in range(30):
    slow.zero_grad()
    fast.zero_grad()
    nn.functional.mse_loss(model(torch.randn(16, 8)), torch.randn(16, 2)).backward()
    if step >= 1000:
        {late}
    fast.step()
"""


@pytest.mark.parametrize(
    ("encoder", "optimizer", "late", "is_forgotten"),
    [
        ("Encoder", "torch.optim.Adam", "pass", True),
        ("Encoder", "torch.optim.Adam", "slow.step()", False),
        ("Encoder", "torch.optim.Adam", "[fast, slow][1].step()", False),
        ("Decoder", "torch.optim.Adam", "pass", False),
        ("Encoder", "Adam", "pass", False),  # where it was made is not kept of what has no hash
    ],
)
def test_an_optimizer_that_the_text_never_steps_was_forgotten(
    tmp_path: Path, encoder: str, optimizer: str, late: str, is_forgotten: bool
) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(encoder=encoder, optimizer=optimizer, late=late))
    command = [TRAINDBG, "run", "--runs", tmp_path / "runs", "-q", "--", sys.executable, program]
    subprocess.run(command, check=True, timeout=120)
    (run_dir,) = (tmp_path / "runs").iterdir()
    run = td.Run(run_dir)
    assert len(run.names("unstepped_optimizer/")) == 1
    assert bool(run.names("unstepped_optimizer_forgotten")) == is_forgotten
