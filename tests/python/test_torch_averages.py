"""What is told of averages of the weights that are kept in 16 bits: real trainings, with twins."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.evaluations.averages import Averages, Found
from traindbg.hooks.torch.recording import recording as recordings

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


class Held:
    """A watched model."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    def models(self) -> list[tuple[nn.Module, str]]:
        return [(self.model, "")]


def looked_at(averages: Averages, steps, change=lambda step: None) -> list[Found | None]:
    """What is found at the steps that are due. `change` is called at each step."""
    found = []
    for step in range(max(steps) + 1):
        change(step)
        if step in steps:
            found.append(averages.look(step, []))
    return found


def told(kind: str, run_dir) -> list[float]:
    if kind == "twice":
        train("in_a_dict", lambda model: td.watch(model, run_dir=run_dir, supervise=False))
        train("in_a_copy", td.watch)
    else:
        train(kind, lambda model: td.watch(model, run_dir=run_dir, supervise=False))
    recordings.current.close()
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


@pytest.mark.parametrize("every", [7, 20, 60])
def test_a_copy_of_a_table_that_is_trained_in_few_rows(every):
    generator = torch.Generator().manual_seed(0)
    model = nn.Embedding(2000, 16)
    copied = model.weight.detach().to(torch.bfloat16)

    def change(step: int) -> None:
        if step % every == 0:
            copied.copy_(model.weight.detach())
        rows = torch.randint(0, 2000, (30,), generator=generator)
        with torch.no_grad():
            model.weight[rows] *= 0.8

    found = looked_at(Averages(Held(model)), [0, 25, 50, 75, 100], change)
    assert any(one is not None for one in found)
    assert all(one is None or one.lost == 0 for one in found)


def test_looks_are_as_far_apart_as_is_said():
    model = nn.Linear(64, 64, bias=False)
    average = model.weight.detach().to(torch.bfloat16)

    def change(step: int) -> None:
        with torch.no_grad():
            model.weight.mul_(1.01)
            average[:32].lerp_(model.weight[:32].to(torch.bfloat16), 0.5)

    averages = Averages(Held(model))
    found = looked_at(averages, [*range(60), 130, 131, 400, 1000], change)
    assert [one.steps for one in found if one is not None] == [25, 80, 270]
    assert averages._averages == []  # nothing is kept any more


def test_many_alike_are_compared_at_once():
    """Of a transformer's matrices or experts, beside sums of gradients in 16 bits."""
    model = nn.ModuleList(nn.Linear(16, 16, bias=False) for _ in range(600))
    noise = [torch.randn(16, 16).to(torch.bfloat16) for _ in range(100)]
    average = model[70].weight.detach().to(torch.bfloat16)
    averages = Averages(Held(model))
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        looked_at(averages, [0, 25])
    assert [known.name for known in averages._averages or ()] == ["70.weight"]
    times = {operation.key: operation.count for operation in profile.key_averages()}
    assert times["aten::matmul"] == 1
    assert times.get("aten::item", 0) == 0  # no waiting for a device, but for the product
    del noise, average


def test_another_training_has_averages_of_its_own(run_dir):
    shares = told("twice", run_dir)
    assert len(shares) >= 4
    assert min(shares) > 0.15


@pytest.mark.parametrize("kind", ["in_a_dict", "in_a_copy"])
def test_results_are_the_same_bits(kind, run_dir):
    alone = fingerprint(*train(kind))
    watched = train(kind, lambda model: td.watch(model, run_dir=run_dir, supervise=False))
    recordings.current.close()
    assert fingerprint(*watched) == alone
