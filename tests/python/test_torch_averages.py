"""What is told of averages of the weights that are kept in 16 bits: real trainings, with twins."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from trainings import fingerprint

import traindbg as td
from traindbg.hooks import torch_recording

STEPS = 110
FAULTS = ("in_a_dict", "in_a_copy", "foreach", "target")


def train(kind: str, watch=None) -> tuple[nn.Module, list[float]]:
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    if watch is not None:
        watch(model)
    short = torch.float32 if kind == "in_float32" else torch.bfloat16
    decay = 0.9 if kind == "fast" else 0.995
    held = {name: p.detach().to(short, copy=True) for name, p in model.named_parameters()}
    served = copy.deepcopy(model).to(short)
    losses = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        x = torch.randn(16, 12, generator=generator)
        y = (x[:, 0] > 0).long() + (x[:, 1] > 0).long()
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        with torch.no_grad():
            weights = [p.to(short) for p in model.parameters()]
            if kind in ("in_a_dict", "fast", "in_float32"):
                for mean, weight in zip(held.values(), weights, strict=True):
                    mean.mul_(decay).add_(weight, alpha=1 - decay)
            elif kind in ("in_a_copy", "target"):
                for mean, weight in zip(served.parameters(), weights, strict=True):
                    mean.data.copy_((1 - decay) * weight + decay * mean)
            elif kind == "foreach":
                torch._foreach_lerp_(list(held.values()), weights, 1 - decay)
            elif kind == "copied_now_and_then" and step % 40 == 0:
                for copied, weight in zip(held.values(), weights, strict=True):
                    copied.copy_(weight)
    return model, losses


def told(kind: str, run_dir) -> list[float]:
    train(kind, lambda model: td.watch(model, run_dir=run_dir, supervise=False))
    torch_recording.current.close()
    run = td.Run(run_dir)
    found = [name for name in run.names() if name.startswith("loop/averages_lost")]
    return [value for name in found for value in run.scalars(name).values.tolist()]


@pytest.mark.parametrize("kind", FAULTS)
def test_an_average_in_16_bits_stays_behind(kind, run_dir):
    shares = told(kind, run_dir)
    assert len(shares) >= 2
    assert min(shares) > 0.15


@pytest.mark.parametrize("kind", ["none", "fast", "in_float32", "copied_now_and_then"])
def test_what_looks_alike_is_not_told(kind, run_dir):
    assert all(share < 0.05 for share in told(kind, run_dir))


@pytest.mark.parametrize("kind", ["in_a_dict", "in_a_copy"])
def test_results_are_the_same_bits(kind, run_dir):
    alone = fingerprint(*train(kind))
    watched = train(kind, lambda model: td.watch(model, run_dir=run_dir, supervise=False))
    torch_recording.current.close()
    assert fingerprint(*watched) == alone
