"""Trainings without an optimizer: a step is an update of the weights, however it is written."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.updates.changes import Changes, Found

STEPS = 8
EVERYTHING = ("weights", "biases", "gradients", "weight_updates", "losses")
Update = Callable[[nn.Module, torch.Tensor], None]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.drop = nn.Dropout(0.1)
        self.last = nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.drop(torch.relu(self.first(x))))


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    x = torch.randn(16, 6, generator=generator)
    return x, torch.randint(0, 3, (16,), generator=generator)


def in_place(model: nn.Module, loss: torch.Tensor) -> None:
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad  # noqa: PLW2901
            p.grad.zero_()


def through_data(model: nn.Module, loss: torch.Tensor) -> None:
    loss.backward()
    for p in model.parameters():
        p.data.sub_(0.1 * p.grad)
        p.grad = None


def data_assigned(model: nn.Module, loss: torch.Tensor) -> None:
    loss.backward()
    for p in model.parameters():
        p.data = p.data - 0.1 * p.grad
        p.grad = None


def foreach(model: nn.Module, loss: torch.Tensor) -> None:
    loss.backward()
    parameters = list(model.parameters())
    with torch.no_grad():
        torch._foreach_add_(parameters, [p.grad for p in parameters], alpha=-0.1)
    model.zero_grad()


def by_grad(model: nn.Module, loss: torch.Tensor) -> None:
    parameters = list(model.parameters())
    for p, g in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
        p.data.sub_(0.1 * g)


def replaced(model: nn.Module, loss: torch.Tensor) -> None:
    loss.backward()
    for part in (model.first, model.last):
        for name, p in list(part.named_parameters()):
            setattr(part, name, nn.Parameter((p - 0.1 * p.grad).detach()))


class OwnOptimizer:
    """Of no class of PyTorch's."""

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self.parameters = parameters
        self.moments = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step(self) -> None:
        for p, m in zip(self.parameters, self.moments, strict=True):
            m.mul_(0.9).add_(p.grad)
            p.add_(m, alpha=-0.1)
            p.grad = None


def by_own_optimizer(model: nn.Module, loss: torch.Tensor) -> None:
    if not hasattr(model, "own"):
        model.own = OwnOptimizer(list(model.parameters()))
    loss.backward()
    model.own.step()


UPDATES = (in_place, through_data, data_assigned, foreach, by_grad, replaced, by_own_optimizer)


class Seen:
    """What the training itself knows."""

    def __init__(self) -> None:
        self.losses: list[float] = []
        self.weights: list[float] = []  # before the update, of first.weight
        self.gradients: list[float] = []
        self.updates: list[float] = []


def train(update: Update, model: nn.Module, steps: int = STEPS, evaluates: bool = False) -> Seen:
    seen = Seen()
    for step in range(steps):
        x, y = batch(step)
        loss = F.cross_entropy(model(x), y)
        before = model.first.weight.detach().clone()
        (gradient,) = torch.autograd.grad(loss, model.first.weight, retain_graph=True)
        update(model, loss)
        seen.losses.append(loss.item())
        seen.weights.append(float(before.norm()))
        seen.gradients.append(float(gradient.norm()))
        seen.updates.append(float((model.first.weight.detach() - before).norm()))
        if evaluates and step % 2:
            model.eval()
            with torch.no_grad():
                F.cross_entropy(model(x), y)
            model.train()
    return seen


def watched(run_dir, update: Update, **options) -> tuple[Seen, td.Run]:
    torch.manual_seed(3)
    model = Net()
    every = {"collect": EVERYTHING, "every": 1}
    with td.watch(model, run_dir=run_dir, supervise=False, **every):
        seen = train(update, model, **options)
    return seen, td.Run(run_dir)


@pytest.mark.parametrize("update", UPDATES)
def test_each_update_is_a_step_with_its_own_numbers(run_dir, update) -> None:
    seen, run = watched(run_dir, update)
    assert run.steps().tolist() == list(range(STEPS))
    for name in ("loss", "loss/cross_entropy"):
        series = run.scalars(name)
        assert series.steps.tolist() == list(range(STEPS))
        assert series.values == pytest.approx(seen.losses)
    for name, known in (
        ("weight/first.weight", seen.weights),
        ("gradient/first.weight", seen.gradients),
        ("weight_update/first.weight", seen.updates),
    ):
        series = run[name].series("l2")
        assert series.steps.tolist() == list(range(STEPS)), name
        assert series.values == pytest.approx(known, rel=1e-4), name
    said = [event["data"] for event in run.events if event["kind"] == "not_captured"]
    assert "weights that had changed" in said[0]["reason"]
    assert run.worker_meta()["optimizers"] == []


@pytest.mark.parametrize("update", UPDATES)
def test_the_training_is_the_same_bit_for_bit(run_dir, update) -> None:
    def result(watch: bool) -> tuple[list[float], bytes, bytes, bytes]:
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        model = Net()
        watcher = None
        if watch:
            every = {"collect": EVERYTHING, "every": 1}
            watcher = td.watch(model, run_dir=run_dir, supervise=False, **every)
        losses = train(update, model, evaluates=True).losses
        if watcher is not None:
            watcher.detach()
        weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
        return (
            losses,
            weights,
            torch.get_rng_state().numpy().tobytes(),
            repr((random.getstate(), np.random.get_state())).encode(),
        )

    assert result(watch=False) == result(watch=True)


def test_evaluations_after_an_update_are_not_of_its_step(run_dir) -> None:
    seen, run = watched(run_dir, in_place, evaluates=True)
    assert run.steps().tolist() == list(range(STEPS))
    assert run.steps("eval").tolist() == list(range(STEPS // 2))
    assert run.scalars("loss").values == pytest.approx(seen.losses)


def test_passes_without_a_change_of_weights_are_micro_batches_of_one_step(run_dir) -> None:
    model = Net()
    known: list[float] = []
    with td.watch(model, run_dir=run_dir, supervise=False, collect=EVERYTHING, every=1):
        for step in range(4):
            for part in range(3):
                x, y = batch(3 * step + part)
                F.cross_entropy(model(x), y).backward()
            known.append(float(model.last.bias.grad.norm()))
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad  # noqa: PLW2901
                    p.grad = None
    run = td.Run(run_dir)
    assert run.steps().tolist() == [0, 1, 2, 3]
    assert run["gradient/last.bias"].series("l2").values == pytest.approx(known)


def test_clipped_gradients_are_those_that_the_update_uses(run_dir) -> None:
    model = Net()
    before: list[float] = []
    every = {"collect": ("gradients", "gradients_before"), "every": 1}
    with td.watch(model, run_dir=run_dir, supervise=False, **every):
        for step in range(4):
            x, y = batch(step)
            F.cross_entropy(model(x), y).backward()
            before.append(float(model.first.weight.grad.norm()))
            norm = nn.utils.clip_grad_norm_(model.parameters(), 0.01)
            clipped = float(model.first.weight.grad.norm())
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad  # noqa: PLW2901
                    p.grad = None
    run = td.Run(run_dir)
    assert run["gradient_before/first.weight"].series("l2").values == pytest.approx(before)
    used = run["gradient/first.weight"].series("l2").values
    assert used[-1] == pytest.approx(clipped)
    assert run.scalars("gradient_before/total_norm").values[-1] == pytest.approx(float(norm))


def test_an_optimizer_that_steps_takes_over_without_a_wrong_step(run_dir) -> None:
    model = Net()
    with td.watch(model, run_dir=run_dir, supervise=False, collect=EVERYTHING, every=1):
        seen = train(in_place, model, steps=3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3, 7):
            x, y = batch(step)
            loss = F.cross_entropy(model(x), y)
            seen.losses.append(loss.item())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    run = td.Run(run_dir)
    assert run.steps().tolist() == list(range(7))
    assert run.scalars("loss").values == pytest.approx(seen.losses)
    assert run.worker_meta()["optimizers"][0]["type"] == "SGD"


def test_weights_that_an_optimizer_has_are_not_changed_by_hand(run_dir) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, supervise=False, collect=EVERYTHING, every=1):
        for step in range(3):
            x, y = batch(step)
            F.cross_entropy(model(x), y).backward()
            with torch.no_grad():  # as SAM does, before the pass whose gradients are used
                for p in model.parameters():
                    p.add_(0.01 * p.grad)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
    assert td.Run(run_dir).steps().tolist() == [0, 1, 2]


def test_gradients_that_are_looked_at_are_no_training(run_dir) -> None:
    model = Net()
    with td.watch(model, run_dir=run_dir, supervise=False):
        for step in range(5):
            x, y = batch(step)
            F.cross_entropy(model(x), y).backward()
            model.zero_grad()
        del model
        gc.collect()
    assert "not_captured" not in {event["kind"] for event in td.Run(run_dir).events}


def test_a_pass_before_the_model_is_watched_no_more_is_no_step(run_dir) -> None:
    model, other = Net(), Net()
    with td.watch(other, run_dir=run_dir, supervise=False):
        watcher = td.watch(model, supervise=False)
        x, y = batch(0)
        F.cross_entropy(model(x), y).backward()
        watcher.detach()
    assert "not_captured" not in {event["kind"] for event in td.Run(run_dir).events}


def test_nothing_is_left_behind_and_nothing_kept_alive(run_dir) -> None:
    code = torch.autograd.grad.__code__
    model = Net()
    weight = weakref.ref(model.first.weight)
    with td.watch(model, run_dir=run_dir, supervise=False, collect=EVERYTHING, every=1):
        train(in_place, model, steps=3)
        gradient = weakref.ref(model.first.weight.grad)
        model.zero_grad()
        assert gradient() is None
        del model
        gc.collect()
        assert weight() is None
    assert torch.autograd.grad.__code__ is code
    assert patches._users == 0


def test_an_ordinary_training_leaves_grad_alone_after_its_first_steps(run_dir) -> None:
    code = torch.autograd.grad.__code__
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with td.watch(model, run_dir=run_dir, supervise=False):
        assert torch.autograd.grad.__code__ is not code
        for step in range(10):  # in which slopes are waited for that have no graph
            x, y = batch(step)
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
        assert torch.autograd.grad.__code__ is code


def test_the_step_of_a_model_that_goes_with_its_last_update_is_recorded(run_dir) -> None:
    def training() -> None:
        train(in_place, model_of[0], steps=3)
        model_of.clear()

    model_of = [Net()]
    with td.watch(model_of[0], run_dir=run_dir, supervise=False):
        training()
    assert td.Run(run_dir).steps().tolist() == [0, 1, 2]


def changed(tensors: list[torch.Tensor], change: Callable[[], None]) -> Found:
    changes = Changes()
    changes.remember(tensors)
    change()
    return changes.found()


def test_changes_are_found_however_they_are_made() -> None:
    a, b = torch.randn(4, 4, requires_grad=True), torch.randn(3, requires_grad=True)

    def assign() -> None:
        b.data = b.data + 1

    assert changed([a, b], lambda: None) is Found.SAME
    assert changed([a, b], lambda: b.data.add_(1)) is Found.CHANGED
    assert changed([a, b], assign) is Found.CHANGED
    with torch.no_grad():
        assert changed([a, b], lambda: b.mul_(2)) is Found.CHANGED
    held = [torch.randn(3)]
    assert changed(held, held.clear) is Found.GONE


def test_a_tensor_that_is_not_a_number_is_like_itself() -> None:
    a = torch.full((3,), torch.nan)
    assert changed([a], lambda: None) is Found.SAME


def test_a_compiled_step_is_found_by_its_changes(run_dir) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses: list[float] = []
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False):
        step = torch.compile(optimizer.step, backend="eager")
        for number in range(5):
            x, y = batch(number)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            losses.append(loss.item())
            loss.backward()
            step()
    run = td.Run(run_dir)
    assert run.scalars("loss").values == pytest.approx(losses)
    reasons = [e["data"]["reason"] for e in run.events if e["kind"] == "not_captured"]
    assert any("step is compiled" in reason for reason in reasons)


@pytest.mark.parametrize(("kept", "told"), [("all", [4.0]), ("one", []), ("by hand", [])])
def test_weights_in_16_bits_that_an_optimizer_has_in_32(
    run_dir: str, kept: str, told: list[float]
) -> None:
    model = Net()
    masters = [nn.Parameter(p.detach().clone()) for p in model.parameters()]
    model.to(torch.bfloat16)
    optimizer = torch.optim.SGD(masters[: 1 if kept == "one" else 4], lr=0.1)
    with td.watch(model, run_dir=run_dir, every=1, supervise=False):
        for step in range(STEPS):
            x, y = batch(step)
            F.cross_entropy(model(x.bfloat16()).float(), y).backward()
            if kept == "by hand":
                in_place(model, torch.zeros((), requires_grad=True))
                del optimizer.param_groups[:]
                continue
            for master, weight in zip(masters, model.parameters(), strict=True):
                master.grad = weight.grad.float()
            optimizer.step()
            with torch.no_grad():
                for master, weight in zip(masters, model.parameters(), strict=True):
                    weight.copy_(master)
            model.zero_grad()
    run = td.Run(run_dir)
    name = "loop/masters_of_weights"
    assert [run[name].series("value")[1].tolist() if name in run.names() else []] == [told]
