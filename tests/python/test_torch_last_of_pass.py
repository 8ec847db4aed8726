"""Several optimizers that step by one backward pass make one step together."""

from __future__ import annotations

import gc
import itertools
import weakref

import pytest
import torch
from test_torch_hot_path import calls  # noqa: F401
from torch import nn
from torch.nn import functional as F

import traindbg as td
from traindbg.hooks.torch.base.guard import failures
from traindbg.hooks.torch.steps import patches

STEPS = 8
FIRST = 2  # steps until the last one is found
WISHES = {"rules": [], "supervise": False, "every": 1}
OF_STEPS = ["losses", "gradients", "weights", "weight_updates", "optimizer_state"]


class Parts:
    """A model whose parts have an optimizer each, and what each of them does."""

    def __init__(self, number: int = 2) -> None:
        torch.manual_seed(0)
        sizes = [6] * number + [3]
        self.model = nn.Sequential(
            nn.Embedding(20, 6, sparse=True),
            *(nn.Linear(a, b) for a, b in itertools.pairwise(sizes[1:])),
        )
        dense = [torch.optim.AdamW(part.parameters(), 0.01) for part in self.model[1:]]
        sparse = torch.optim.SparseAdam(self.model[0].parameters(), 0.01)
        self.optimizers: list[torch.optim.Optimizer] = [sparse, *dense]
        self.losses: list[float] = []
        self.gradients: list[list[float]] = []
        self.updates: list[list[float]] = []
        self.averages: list[list[float]] = []

    def compute(self) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        loss = F.cross_entropy(self.model(torch.randint(0, 20, (8,))), torch.randint(0, 3, (8,)))
        loss.backward()
        self.losses.append(loss.item())

    def train(self, steps: int = STEPS, every: int = 1) -> None:
        """The last one steps at every so many passes."""
        weights = [part.weight for part in self.model]
        for step in range(steps):
            self.compute()
            self.gradients.append([float(weight.grad.to_dense().norm()) for weight in weights])
            before = [weight.detach().clone() for weight in weights]
            for number, optimizer in enumerate(self.optimizers):
                if number < len(self.optimizers) - 1 or step % every == 0:
                    optimizer.step()
            self.updates.append(
                [float((w.detach() - b).norm()) for w, b in zip(weights, before, strict=True)]
            )
            states = [o.state[w] for o, w in zip(self.optimizers, weights, strict=True)]
            self.averages.append([float(state["exp_avg"].norm()) for state in states])


def seen(run: td.Run, name: str) -> list[float]:
    return run[name].values("l2").tolist()


@pytest.mark.parametrize("number", [2, 3, 5])
@pytest.mark.parametrize("path", ["cpu path", "device path"])
def test_the_record_of_a_pass_has_what_all_of_them_did(run_dir, number, path, monkeypatch):
    if path == "device path":
        monkeypatch.setenv("TRAINDBG_DEVICE_PATH", "1")
    parts = Parts(number)
    with td.watch(parts.model, run_dir=run_dir, collect=OF_STEPS, **WISHES):
        parts.train()
    run = td.Run(run_dir)
    assert run.totals["steps"] == STEPS
    assert run.scalars("loss").values.tolist() == pytest.approx(parts.losses)
    assert [name for name in run.names() if "@" in name] == []
    for part in range(number):
        gradients = [each[part] for each in parts.gradients]
        assert seen(run, f"gradient/{part}.weight") == pytest.approx(gradients, rel=1e-4)
        first = FIRST if part > 0 else 0
        for name, values in (
            (f"weight_update/{part}.weight", parts.updates),
            (f"optimizer_state/{part}.weight.exp_avg", parts.averages),
        ):
            assert run[name].steps().tolist()[-STEPS + first :] == list(range(first, STEPS))
            wanted = [each[part] for each in values[first:]]
            assert seen(run, name)[-STEPS + first :] == pytest.approx(wanted, rel=1e-4)
    assert "optimizer_state/lr#2.0" in run.names()
    assert failures == {}


def test_steps_at_which_only_one_is_due_are_not_mixed(run_dir):
    parts = Parts()
    wishes = WISHES | {"every": 3, "collect": OF_STEPS}
    with td.watch(parts.model, run_dir=run_dir, **wishes):
        parts.train()
    run = td.Run(run_dir)
    assert run["weight_update/1.weight"].steps().tolist() == [3, 6]
    assert seen(run, "gradient/1.weight")[1:] == pytest.approx(
        [parts.gradients[step][1] for step in (3, 6)]
    )
    assert seen(run, "weight_update/1.weight") == pytest.approx(
        [parts.updates[step][1] for step in (3, 6)], rel=1e-4
    )


def test_their_ordinary_steps_reach_no_hook_in_python(run_dir, calls):  # noqa: F811
    parts = Parts(3)
    with td.watch(parts.model, run_dir=run_dir, **WISHES | {"collect": ["losses"]}):
        parts.train(5)
        before = dict(calls)
        parts.train(20)
    assert dict(calls) == before
    run = td.Run(run_dir)
    assert run.scalars("loss").values.tolist() == pytest.approx(parts.losses)
    assert run.scalars("loss/cross_entropy").steps.tolist() == list(range(25))


@pytest.mark.parametrize("every", [2, 3])
def test_one_that_steps_at_some_passes_only_ends_no_steps(run_dir, every):
    parts = Parts()
    with td.watch(parts.model, run_dir=run_dir, collect=["losses", "loop"], **WISHES):
        parts.train(12, every)
    run = td.Run(run_dir)
    assert run.scalars("loss").values.tolist() == pytest.approx(parts.losses)
    assert set(run.scalars("loop/backward_passes").values.tolist()) == {1}


def test_without_it_the_one_that_drives_ends_the_steps_again(run_dir):
    parts = Parts()
    with td.watch(parts.model, run_dir=run_dir, **WISHES | {"collect": ["losses"]}):
        parts.train(4)
        last = weakref.ref(parts.optimizers.pop())
        gc.collect()
        assert last() is None  # nothing keeps it
        for _ in range(4):
            parts.compute()
            parts.optimizers[0].step()
    run = td.Run(run_dir)
    assert run.scalars("loss").values.tolist() == pytest.approx(parts.losses)


def test_one_that_is_not_used_any_more_ends_no_steps(run_dir):
    parts = Parts()
    with td.watch(parts.model, run_dir=run_dir, **WISHES | {"collect": ["losses"]}):
        parts.train(4)
        for _ in range(6):
            parts.compute()
            parts.optimizers[0].step()
    losses = td.Run(run_dir).scalars("loss").values.tolist()
    # Three passes are one step until it is certain.
    assert losses == pytest.approx([*parts.losses[:5], *parts.losses[7:]])


def test_they_take_turns_later(run_dir):
    """It is noticed at the first step at which something of both is due."""
    torch.manual_seed(0)
    model = nn.ModuleDict({"first": nn.Linear(4, 3), "last": nn.Linear(4, 3)})
    optimizers = [torch.optim.SGD(part.parameters(), 0.01) for part in model.values()]
    losses: list[list[float]] = []

    def loss_of(part: nn.Module) -> torch.Tensor:
        return F.cross_entropy(part(torch.randn(5, 4)), torch.tensor([0, 1, 2, 0, 1]))

    wishes = WISHES | {"collect": ["losses", "gradients"]}
    with td.watch(model, run_dir=run_dir, **wishes):
        for _ in range(4):
            loss = loss_of(model["first"]) + loss_of(model["last"])
            loss.backward()
            for optimizer in optimizers:
                optimizer.step()
        for _ in range(6):
            losses.append([])
            for part, optimizer in zip(model.values(), optimizers, strict=True):
                optimizer.zero_grad()
                loss = loss_of(part)
                loss.backward()
                optimizer.step()
                losses[-1].append(loss.item())
    run = td.Run(run_dir)
    assert run.scalars("loss").values.tolist()[4:] == pytest.approx([first for first, _ in losses])
    of_last = run.scalars("loss@last")
    assert of_last.steps.tolist() == [6, 7, 8, 9, 10]  # those of the turn before
    assert of_last.values.tolist() == pytest.approx([last for _, last in losses[1:]])


def test_their_order_changes(run_dir):
    parts = Parts()
    with td.watch(parts.model, run_dir=run_dir, collect=["losses", "gradients"], **WISHES):
        parts.train(4)
        for _ in range(4):
            parts.compute()
            for optimizer in reversed(parts.optimizers):
                optimizer.step()
    run = td.Run(run_dir)
    assert run.scalars("loss").values.tolist() == pytest.approx(parts.losses)
    assert run.totals["steps"] == 8


def test_rates_of_the_one_that_drives_are_told_where_they_change(run_dir):
    parts = Parts()
    schedule = torch.optim.lr_scheduler.StepLR(parts.optimizers[0], 2, 0.5)
    capture = [{"collection": "losses"}, {"collection": "loop", "every": 50}]
    with td.watch(parts.model, run_dir=run_dir, rules=[], capture=capture, supervise=False):
        for _ in range(STEPS):
            parts.compute()
            for optimizer in parts.optimizers:
                optimizer.step()
            schedule.step()
    rates = td.Run(run_dir).scalars("loop/learning_rate")
    assert rates.values.tolist() == pytest.approx([0.01, 0.005, 0.0025, 0.00125])
    assert rates.steps.tolist() == [0, 2, 4, 6]


class Overflowing(torch.autograd.Function):
    """Its gradient is infinite where it is told to be."""

    @staticmethod
    def forward(ctx, x, is_on):
        ctx.is_on = is_on
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return (gradient * torch.inf if ctx.is_on else gradient), None


@pytest.mark.parametrize("skipped", ["first", "last", "both"])
def test_one_of_them_is_left_out_by_a_scaler(run_dir, skipped):
    torch.manual_seed(0)
    first, last = nn.Linear(4, 6), nn.Linear(6, 3)
    model = nn.ModuleList([first, last])
    optimizers = [torch.optim.SGD(part.parameters(), 0.01) for part in model]
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1000)
    losses = []
    with td.watch(model, run_dir=run_dir, collect=["losses", "loop"], **WISHES):
        for step in range(STEPS):
            is_on = step == 4
            for optimizer in optimizers:
                optimizer.zero_grad()
            hidden = Overflowing.apply(first(torch.randn(5, 4)), is_on and skipped != "last")
            out = last(hidden.detach() if is_on and skipped == "last" else hidden)
            out = Overflowing.apply(out, is_on and skipped != "first")
            loss = F.cross_entropy(out, torch.tensor([0, 1, 2, 0, 1]))
            if is_on and skipped == "last":
                loss = loss + first(torch.ones(1, 4)).sum() * 0.1
            scaler.scale(loss).backward()
            for optimizer in optimizers:
                scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
    run = td.Run(run_dir)
    # Where both are left out, the pass goes into the step that comes next.
    wanted = losses[:4] + losses[5:] if skipped == "both" else losses
    assert run.totals["steps"] == len(wanted)
    values = run.scalars("loss").values.tolist()
    assert values[:4] == pytest.approx(losses[:4])
    assert values[-2:] == pytest.approx(losses[-2:])
    told = [name for name in run.names() if "skipped_steps" in name]
    assert bool(told) == (skipped == "both")
    assert failures == {}


def test_nothing_changes_for_the_training(run_dir):
    alone = Parts(3)
    alone.train()
    state = torch.get_rng_state()
    watched = Parts(3)
    with td.watch(watched.model, run_dir=run_dir, collect=OF_STEPS, **WISHES):
        watched.train()
        assert patches.state.listener is not None
    assert watched.losses == alone.losses
    assert torch.equal(torch.get_rng_state(), state)
    for one, other in zip(watched.model.parameters(), alone.model.parameters(), strict=True):
        assert torch.equal(one, other)
