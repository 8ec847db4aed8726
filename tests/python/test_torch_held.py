"""Losses that are kept with their graphs are counted; nothing that is let go is held here."""

from __future__ import annotations

import gc
import weakref
from collections import deque

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import traindbg as td

STEPS = 60


def train(run_dir, keep=None, keep_evaluation=None, every=None, in_training_mode=False):
    """`keep(loss, output)` is called in every step, `keep_evaluation` in every fifth."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(
        model, optimizer, run_dir=run_dir, supervise=False, rules=["memory_leak", "overfit"]
    )
    for step in range(STEPS):
        x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
        output = model(x)
        loss = F.cross_entropy(output, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if keep is not None:
            keep(loss, output)
        if every is not None and step % 20 == 19:
            every()
        if step % 5 == 4:
            model.train(in_training_mode)
            if keep_evaluation is not None:
                keep_evaluation(F.cross_entropy(model(x), y))
            else:
                with torch.no_grad():
                    F.cross_entropy(model(x), y)
            model.train()
    watcher.detach()


def last(run_dir, name) -> float:
    return td.Run(run_dir).scalars(name).values.tolist()[-1]


class Total:
    """A sum of losses, as of `total += loss`."""

    def __init__(self):
        self.value = 0

    def add(self, loss, output):
        self.value = self.value + loss


def test_losses_in_a_list_are_all_still_there(run_dir):
    kept = []
    train(run_dir, lambda loss, output: kept.append(loss))
    assert last(run_dir, "loop/graphs_held") == last(run_dir, "loop/graphs_marked") >= 11


def test_a_sum_of_losses_keeps_the_graphs_of_all(run_dir):
    total = Total()
    train(run_dir, total.add)
    assert last(run_dir, "loop/graphs_held") == last(run_dir, "loop/graphs_marked") >= 11


def test_outputs_in_a_list_count_too(run_dir):
    kept = []
    train(run_dir, lambda loss, output: kept.append(output))
    assert last(run_dir, "loop/graphs_held") == last(run_dir, "loop/graphs_marked") >= 11


def test_features_that_a_hook_keeps_count_too(run_dir):
    kept = []

    def keep_features(module, inputs, output):
        if isinstance(module, nn.ReLU):
            kept.append(output)

    handle = nn.modules.module.register_module_forward_hook(keep_features)
    try:
        train(run_dir)
    finally:
        handle.remove()
    assert last(run_dir, "loop/graphs_held") == last(run_dir, "loop/graphs_marked") >= 11


@pytest.mark.parametrize("keep", [None, lambda loss, output: loss.item()])
def test_losses_that_are_let_go_are_gone(run_dir, keep):
    train(run_dir, keep)
    assert last(run_dir, "loop/graphs_held") == 0


def test_numbers_and_detached_losses_hold_nothing(run_dir):
    kept = []
    train(run_dir, lambda loss, output: kept.extend([loss.item(), loss.detach(), output.detach()]))
    assert last(run_dir, "loop/graphs_held") == 0


def test_a_window_of_losses_holds_few_of_them(run_dir):
    window = deque(maxlen=5)
    train(run_dir, lambda loss, output: window.append(loss))
    assert last(run_dir, "loop/graphs_held") <= 1 < last(run_dir, "loop/graphs_marked")


def test_losses_of_an_epoch_are_let_go_at_its_end(run_dir):
    kept = []
    train(run_dir, lambda loss, output: kept.append(loss), every=kept.clear)
    assert last(run_dir, "loop/graphs_held") <= 1


@pytest.mark.parametrize("in_training_mode", [False, True])
def test_losses_of_evaluations_with_graphs(run_dir, in_training_mode):
    kept = []
    train(run_dir, keep_evaluation=kept.append, in_training_mode=in_training_mode)
    held = last(run_dir, "loop/graphs_held/without_backward")
    assert held == last(run_dir, "loop/graphs_marked/without_backward") >= 1


@pytest.mark.parametrize("keeps_graphs", [False, True])
def test_an_average_of_errors_that_no_loss_function_gives(run_dir, keeps_graphs):
    """Looked at after every step, by the model as it trains."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    smooth = torch.zeros(())
    x_val = torch.randn(8, 4)
    rules = ["memory_leak", "dead_relu"]  # the second one has passes looked at
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules):
        for _ in range(STEPS):
            loss = F.mse_loss(model(torch.randn(8, 4)), torch.zeros(8, 1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.set_grad_enabled(keeps_graphs):
                error = (model(x_val) - 1).abs().mean()
            smooth = 0.98 * smooth + 0.02 * error
    if keeps_graphs:
        held = last(run_dir, "loop/graphs_held/without_backward")
        assert held == last(run_dir, "loop/graphs_marked/without_backward") >= 3
    else:
        assert "loop/graphs_marked/without_backward" not in td.Run(run_dir).names()


def test_evaluations_without_graphs_are_not_counted(run_dir):
    train(run_dir)
    assert "loop/graphs_marked/without_backward" not in td.Run(run_dir).names()


def test_no_graph_lives_longer_than_without_watching(run_dir):
    held = []

    class Leaf(torch.autograd.Function):
        """Whose saved tensor tells whether its graph is alive."""

        @staticmethod
        def forward(ctx, x):
            ctx.kept = torch.zeros(1)
            held.append(weakref.ref(ctx.kept))
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)

        def forward(self, x):
            return Leaf.apply(self.fc(x))

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    for _ in range(30):
        loss = F.cross_entropy(model(torch.randn(8, 4)), torch.randint(0, 3, (8,)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        del loss
        gc.collect()
        assert sum(kept() is not None for kept in held) == 0
    watcher.detach()
    assert len(held) == 30
