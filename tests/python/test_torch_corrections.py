"""Corrections in one process: what they change, and that they change nothing else.

The supervisor asks through the control page; here its words are written as docs/format/control.md
says. Whole trainings that recover: tests/e2e/test_corrections.py.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg.errors import InvalidArgument

if TYPE_CHECKING:
    from collections.abc import Callable

LOWER_LR, ROLL_BACK, BAD_SINCE = 76, 80, 88
KEEPS = {"snapshot_every": 2, "lr_factor": 0.5}


def ask(run: Path, offset: int, bad_since: int = 0) -> None:
    control = os.open(run / "control", os.O_RDWR)
    try:
        if offset == ROLL_BACK:
            os.pwrite(control, struct.pack("<Q", bad_since), BAD_SINCE)
        (count,) = struct.unpack("<I", os.pread(control, 4, offset))
        os.pwrite(control, struct.pack("<I", count + 1), offset)
    finally:
        os.close(control)


def watch(model: nn.Module, run: Path, corrections: dict[str, Any]) -> td.Watcher:
    return td.watch(model, run_dir=run, rules=[], supervise=False, corrections=corrections)


def corrections_of(run: Path) -> list[dict[str, Any]]:
    return [each["data"] for each in td.Run(run).events if each["kind"] == "correction"]


def values(model: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def step(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor | None = None) -> None:
    optimizer.zero_grad()
    x = torch.randn(8, 4) if x is None else x
    nn.functional.mse_loss(model(x), torch.zeros(8, 1)).backward()
    optimizer.step()


def two_layers() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda p: torch.optim.Adam(p, lr=0.01),
    "fused": lambda p: torch.optim.Adam(p, lr=0.01, fused=True),
    "amsgrad": lambda p: torch.optim.AdamW(p, lr=0.01, amsgrad=True),
}


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_a_roll_back_restores_parameters_and_the_state_of_the_optimizer(
    tmp_path: Path, kind: str
) -> None:
    """After it, the same batches give what they gave before."""
    model = two_layers()
    optimizer = OPTIMIZERS[kind](model.parameters())
    batches = torch.randn(40, 8, 4)
    with watch(model, tmp_path / "run", KEEPS | {"lr_factor": 1.0}):
        reached = []
        for batch in batches[:13]:
            step(model, optimizer, batch)
            reached.append(values(model))
        ask(tmp_path / "run", ROLL_BACK, 23)  # ten steps before it: after 12 steps
        torch.nn.utils.vector_to_parameters(torch.full((25,), torch.nan), model.parameters())
        step(model, optimizer, batches[20])
        for ours, theirs in zip(values(model), reached[11], strict=True):
            assert torch.equal(ours, theirs)
        step(model, optimizer, batches[12])
        for ours, theirs in zip(values(model), reached[12], strict=True):
            assert torch.equal(ours, theirs)
    (made,) = corrections_of(tmp_path / "run")
    assert (made["action"], made["to"], made["number"]) == ("roll_back", 12, 1)


def test_a_roll_back_in_a_step_of_two_optimizers_leaves_both_at_what_was_kept(
    tmp_path: Path,
) -> None:
    """Both step by what was computed before: the roll-back comes when the last one has stepped."""
    torch.manual_seed(0)
    generator, critic = nn.Linear(3, 4), nn.Linear(4, 1)
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (generator, critic)]
    watch(generator, tmp_path / "run", KEEPS)
    reached = []
    with td.watch(critic):
        for number in range(30):
            reached.append(values(generator)[0])
            fake = generator(torch.randn(8, 3))
            optimizers[1].zero_grad()
            critic(fake.detach()).mean().backward()
            loss = nn.functional.softplus(-critic(fake)).mean()
            optimizers[0].zero_grad()
            loss.backward()
            if number == 25:
                before = values(generator)
                ask(tmp_path / "run", ROLL_BACK, 25)
            optimizers[1].step()
            assert number != 25 or torch.equal(values(generator)[0], before[0])
            optimizers[0].step()
            if number == 25:
                left = values(generator)[0]
                assert any(torch.equal(left, one) for one in reached[:25]), "stepped by an old one"


def test_a_graph_from_before_a_roll_back_can_be_gone_back_through(tmp_path: Path) -> None:
    model = two_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, tmp_path / "run", KEEPS):
        for _ in range(20):
            step(model, optimizer)
        other = nn.functional.mse_loss(model(torch.randn(8, 4)), torch.ones(8, 1))
        for parameter in model.parameters():
            parameter.grad = None
        ask(tmp_path / "run", ROLL_BACK, 20)
        optimizer.step()  # nothing to do: it changes no parameter, the roll-back does
        other.backward()
    assert corrections_of(tmp_path / "run")[0]["action"] == "roll_back"


def test_state_that_is_not_of_a_parameter_is_restored_too(tmp_path: Path) -> None:
    model = two_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, tmp_path / "run", KEEPS):
        for number in range(20):
            optimizer.state["all"] = {"steps": number + 1, "norms": [torch.ones(2) * number]}
            step(model, optimizer)
        ask(tmp_path / "run", ROLL_BACK, 24)
        step(model, optimizer)
        kept = optimizer.state["all"]
        assert kept["steps"] == 14
        assert kept["norms"][0].tolist() == [13, 13]
        step(model, optimizer)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_bad_steps_are_left_out_in_any_type(tmp_path: Path, dtype: torch.dtype) -> None:
    model = two_layers().to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, tmp_path / "run", {"skip_bad_steps": True}):
        for number in range(5):
            optimizer.zero_grad()
            model(torch.randn(8, 4, dtype=dtype)).square().mean().backward()
            if number == 3:
                first = next(model.parameters())
                assert first.grad is not None
                first.grad[0, 0] = torch.inf
                before = values(model)
            optimizer.step()
            if number == 3:
                assert all(map(torch.equal, before, values(model)))
                assert first.grad is not None, "it has its gradient back"
    assert [made["step"] for made in corrections_of(tmp_path / "run")] == [3]


def test_a_dry_run_tells_of_a_bad_step_and_lets_it_happen(tmp_path: Path) -> None:
    model = two_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with watch(model, tmp_path / "run", {"skip_bad_steps": True, "dry_run": True, "most": 1}):
        for number in range(3):
            step(model, optimizer, torch.full((8, 4), torch.inf) if number == 1 else None)
    assert not any(value.isfinite().all() for value in values(model))
    made = corrections_of(tmp_path / "run")
    assert [each.get("dry_run", False) for each in made] == [True, False], "as often as allowed"
    assert made[0]["step"] == 1
    assert "would have been left out" in made[0]["text"]


def test_what_a_gradient_scaler_leaves_out_is_no_correction(tmp_path: Path) -> None:
    model = two_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    with watch(model, tmp_path / "run", {"skip_bad_steps": True}):
        for _ in range(6):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(torch.randn(8, 4)) * 1e3, torch.zeros(8, 1))
            scaler.scale(loss * 1e9).backward()
            scaler.step(optimizer)
            scaler.update()
    assert corrections_of(tmp_path / "run") == []


def test_a_lower_learning_rate_is_the_optimizers_and_not_the_programs(tmp_path: Path) -> None:
    model = two_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    used: list[float] = []
    optimizer.register_step_pre_hook(lambda *_: used.append(optimizer.param_groups[0]["lr"]))
    with watch(model, tmp_path / "run", KEEPS):
        for number in range(4):
            if number == 1:
                ask(tmp_path / "run", LOWER_LR)
            step(model, optimizer)
            schedule.step()
            assert optimizer.param_groups[0]["lr"] == 0.5 ** (number + 1)
        with pytest.raises(ZeroDivisionError):
            optimizer.step(lambda: 1 / 0)
        assert optimizer.param_groups[0]["lr"] == 0.5**4
    step(model, optimizer)
    assert used[:4] == [1.0, 0.5, 0.5 * 0.25, 0.5 * 0.125]
    assert used[-1] == 0.5**4, "after detaching, the program's"


def test_refusals_are_told_once_and_use_nothing_up(tmp_path: Path) -> None:
    model = two_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, tmp_path / "run", {"most": 1}):
        for _ in range(4):
            ask(tmp_path / "run", ROLL_BACK, 1)
            step(model, optimizer)
        ask(tmp_path / "run", LOWER_LR)
        step(model, optimizer)
        step(model, optimizer)
    refused, lowered = corrections_of(tmp_path / "run")
    assert refused["refused"]
    assert "no snapshot" in refused["text"]
    assert (lowered["action"], lowered["number"]) == ("lower_lr", 1)


def test_a_roll_back_from_no_known_step_is_refused(tmp_path: Path) -> None:
    model = two_layers()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with watch(model, tmp_path / "run", KEEPS):
        for _ in range(12):
            step(model, optimizer)
        ask(tmp_path / "run", ROLL_BACK, (1 << 64) - 1)
        step(model, optimizer)
    (refused,) = corrections_of(tmp_path / "run")
    assert refused["refused"]
    assert "back to before the fault: it is not known with which step" in refused["text"]


def test_unknown_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="skip_bad_steps"):
        watch(two_layers(), tmp_path / "run", {"skip_bad_step": True})
    with pytest.raises(InvalidArgument, match="lr_factor"):
        watch(two_layers(), tmp_path / "run", {"lr_factor": 0})
