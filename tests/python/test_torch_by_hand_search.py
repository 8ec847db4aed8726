"""Trainings without an optimizer under `traindbg run`: what is trained is found by its changes."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

import traindbg as td
from traindbg import _core, _plan
from traindbg.hooks.torch.base.leaves import Leaves, leaves_of, names_of
from traindbg.hooks.torch.steps import patches
from traindbg.hooks.torch.steps.by_hand_search import ByHandSearch
from traindbg.hooks.torch.steps.pass_search import PassListener

BEGIN = """
import json, sys
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
inputs, targets = torch.randn(64, 5), torch.randn(64, 1)
losses = []

def batch(step):
    part = slice(step % 4 * 16, step % 4 * 16 + 16)
    return inputs[part], targets[part]
"""
END = """
print(json.dumps(losses))
"""
MODULE = """
def main():
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    for step in range(10):
        x, y = batch(step)
        loss = F.mse_loss(model(x), y)
        losses.append(loss.item())
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
                p.grad.zero_()
main()
"""
BY_GRAD = """
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
parameters = list(model.parameters())
from torch.autograd import grad
for step in range(10):
    x, y = batch(step)
    loss = F.mse_loss(model(x), y)
    losses.append(loss.item())
    for p, g in zip(parameters, grad(loss, parameters)):
        p.data.sub_(0.1 * g)
"""
FUNCTIONAL = """
w1, b1 = torch.randn(5, 8) / 3, torch.zeros(8)
w2, b2 = torch.randn(8, 1) / 3, torch.zeros(1)
for p in (w1, b1, w2, b2):
    p.requires_grad_()
for step in range(10):
    x, y = batch(step)
    loss = ((torch.relu(x @ w1 + b1) @ w2 + b2 - y) ** 2).mean()
    losses.append(loss.item())
    loss.backward()
    with torch.no_grad():
        for p in (w1, b1, w2, b2):
            p -= 0.1 * p.grad
            p.grad = None
"""
REPLACED = """
state = {"w1": torch.randn(5, 8) / 3, "b1": torch.zeros(8), "w2": torch.randn(8, 1) / 3}
for key in state:
    state[key].requires_grad_()
for step in range(10):
    x, y = batch(step)
    loss = F.mse_loss(torch.relu(x @ state["w1"] + state["b1"]) @ state["w2"], y)
    losses.append(loss.item())
    gradients = torch.autograd.grad(loss, list(state.values()))
    state = {
        key: (p - 0.1 * g).detach().requires_grad_()
        for (key, p), g in zip(state.items(), gradients)
    }
"""


def recorded(forked, run_dir, source: str) -> tuple[td.Run | None, list[float]]:
    done = forked(BEGIN + source + END, recorded=run_dir, TRAINDBG_STRICT="1")
    assert done.returncode == 0, done.stderr
    is_there = (run_dir / "RUN.json").exists()
    return td.Run(run_dir) if is_there else None, json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("source", "weight"),
    [
        (MODULE, "0.weight"),
        (BY_GRAD, "0.weight"),
        (FUNCTIONAL, "w1"),
        (REPLACED, "w1"),
    ],
    ids=["module", "by_grad", "functional", "replaced"],
)
def test_what_is_trained_is_found_and_every_step_has_its_loss(
    forked, run_dir, source, weight
) -> None:
    run, losses = recorded(forked, run_dir, source)
    assert run is not None
    assert run.steps().tolist() == list(range(10))
    assert run.scalars("loss").values == pytest.approx(losses)
    by_function = run.scalars("loss/mse_loss") if "loss/mse_loss" in run else None
    if by_function is not None:
        known = [losses[step] for step in by_function.steps]
        assert by_function.values == pytest.approx(known)
    assert run[f"gradient/{weight}"].steps().tolist() == list(range(2, 10))
    assert run[f"weight_update/{weight}"].series("l2").values.min() > 0


def test_a_loss_that_was_computed_too_early_is_not_said_to_be_unheard(forked, run_dir) -> None:
    run_dir.mkdir()
    asked = _plan.wishes("labels", 1, None, None, None)
    plan = _plan.make_plan(_core.plan_for_rules([]), *asked)
    (run_dir / "plan.json").write_text(plan, encoding="utf-8")
    run, _ = recorded(forked, run_dir, MODULE)
    assert run is not None
    assert run["label/mse_loss"].steps().tolist() == list(range(3, 10))
    said = [event["data"]["what"] for event in run.events if event["kind"] == "not_captured"]
    assert "what loss functions are given" not in said


def test_one_way_after_the_other_as_a_course_goes_through_them(forked, run_dir) -> None:
    by_optimizer = """
model = nn.Linear(5, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    x, y = batch(step)
    loss = F.mse_loss(model(x), y)
    losses.append(loss.item())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
    run, losses = recorded(forked, run_dir, FUNCTIONAL + MODULE + by_optimizer)
    assert run is not None
    assert len(losses) == 30
    assert run.steps().tolist() == list(range(30))
    assert run.scalars("loss").values == pytest.approx(losses)
    trainings = run.scalars("loop/trainings")
    assert trainings.values.tolist() == [2, 3]
    assert run.worker_meta()["optimizers"][0]["type"] == "SGD"


@pytest.mark.parametrize(
    "source",
    [
        # Saliency: gradients of the inputs, of a model whose weights stay.
        """
model = nn.Linear(5, 1)
for step in range(12):
    x = batch(step)[0].clone().requires_grad_()
    model(x).sum().backward()
""",
        # The same of a frozen model: each batch is another leaf of the same shape.
        """
model = nn.Linear(5, 1).requires_grad_(False)
for step in range(12):
    x = batch(step)[0].clone().requires_grad_()
    model(x).sum().backward()
""",
        # Gradients are computed, and nothing uses them.
        """
model = nn.Linear(5, 1)
for step in range(12):
    x, y = batch(step)
    F.mse_loss(model(x), y).backward()
    model.zero_grad()
""",
        # Sensitivities of a model in half precision, of which nobody has copies.
        """
model = nn.Linear(5, 1).half()
optimizer = torch.optim.SGD([torch.zeros(3, requires_grad=True)], lr=0.1)
for step in range(200):
    x, y = batch(step)
    model(x.half()).sum().backward()
    model.zero_grad()
""",
        # A trial before weights are loaded.
        """
model = nn.Linear(5, 1)
state = {key: value + 1 for key, value in model.state_dict().items()}
for step in range(4):
    x, y = batch(step)
    F.mse_loss(model(x), y).backward()
    if step == 1:
        model.load_state_dict(state)
""",
    ],
    ids=["saliency", "frozen", "unused", "half", "loaded"],
)
def test_passes_that_train_nothing_begin_no_recording(forked, run_dir, source) -> None:
    assert recorded(forked, run_dir, source)[0] is None


def test_halves_that_always_overflow_are_recorded_although_nothing_steps(forked, run_dir) -> None:
    source = """
model = nn.Linear(5, 1).half()
masters = [p.detach().float().requires_grad_() for p in model.parameters()]
optimizer = torch.optim.SGD(masters, lr=0.1)
for step in range(200):
    x, y = batch(step)
    model.zero_grad()
    (1e6 * F.mse_loss(model(x.half()).float(), y)).backward()
    gradients = [p.grad.float() for p in model.parameters()]
    if all(gradient.isfinite().all() for gradient in gradients):
        for master, gradient in zip(masters, gradients):
            master.grad = gradient
        optimizer.step()
"""
    run, _ = recorded(forked, run_dir, source)
    assert run is not None
    assert run.scalars("loop/steps_left_out").values.size >= 1


def test_an_optimizer_ends_the_search() -> None:
    code = torch.autograd.grad.__code__
    patches.acquire()
    passes = PassListener()
    search = ByHandSearch(passes, lambda *_: None, set)
    assert patches.state.listener is passes
    assert torch.autograd.grad.__code__ is not code
    search.end()
    assert patches.state.listener is None
    assert torch.autograd.grad.__code__ is code
    patches.release()


def test_leaves_are_found_in_the_order_in_which_they_are_used() -> None:
    first, last = nn.Linear(3, 4), nn.Linear(4, 1)
    places = [id(leaf) for leaf in leaves_of(last(torch.relu(first(torch.ones(2, 3)))).sum())]
    assert len(places) == 4
    assert places.index(id(first.weight)) < places.index(id(last.weight))


def test_leaves_have_the_names_of_what_holds_them() -> None:
    class Holder:
        def __init__(self) -> None:
            self.scale = torch.ones(2, requires_grad=True)

    holder = Holder()
    held = {"weights": [torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)]}
    local = torch.ones(4, requires_grad=True)
    names = names_of([holder.scale, *held["weights"], local])
    assert names == ["scale", "weights.0", "weights.1", "tensor3"]


def test_leaves_that_took_the_places_of_others_are_followed() -> None:
    old = [torch.ones(2), torch.ones(3)]
    leaves = Leaves(old, ["a", "b"])
    new = [torch.ones(2), torch.ones(3)]
    assert not leaves.follow(old)
    assert not leaves.follow(new[:1])
    assert leaves.follow(new)
    assert [id(p) for p in leaves.parameters()] == [id(p) for p in new]
    del old, new
    assert list(leaves.parameters()) == []
