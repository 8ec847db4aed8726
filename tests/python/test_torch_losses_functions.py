"""Functions of the user's own whose backward gives its gradient to the wrong input."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from trainings import fingerprint

import traindbg as td
from traindbg.hooks.torch.losses.functions import written_by_user

FACT = "loop/gradient_gone_astray"


def function(name, backward):
    """The mean square of the sum of each row, less a known sum."""

    class Defect(torch.autograd.Function):
        @staticmethod
        def forward(ctx, rows, known):
            defect = rows.sum(1) - known
            ctx.save_for_backward(defect, rows)
            return defect.square().mean()

        @staticmethod
        def backward(ctx, upstream):
            defect, rows = ctx.saved_tensors
            slope = upstream * 2 * defect[:, None] / len(defect)
            return backward(slope.expand_as(rows), -slope[:, 0])

    Defect.__name__ = name
    return Defect


def train(run_dir, backward, *, watch=True, known_has_gradient=False):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    watcher = None
    if watch:
        rules = ["detached_loss"]
        watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=rules)
    seen = []
    defect = function("Defect", backward)
    for _ in range(12):
        x = torch.randn(16, 6)
        out = model(x)
        known = out.sum(1) / 2 if known_has_gradient else x.sum(1)
        loss = (out - x[:, :4]).square().mean() + defect.apply(out, known)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    if watcher is not None:
        watcher.detach()
    return fingerprint(model, seen)


def astray(run_dir) -> dict[str, list[float]]:
    run = td.Run(run_dir)
    return {
        name.removeprefix(FACT + "/"): list(run[name].values())[:3]
        for name in run.names()
        if name.startswith(FACT)
    }


def test_a_gradient_for_the_wrong_input_is_told(run_dir):
    train(run_dir, lambda slope, known: (None, slope))
    assert astray(run_dir) == {"Defect": [1, 1, 1]}


@pytest.mark.parametrize(
    ("backward", "known_has_gradient"),
    [
        (lambda slope, known: (slope, None), False),
        (lambda slope, known: (slope, known), False),  # one more than is needed
        (lambda slope, known: (slope, None), True),  # of two that are needed, on purpose
        (lambda slope, known: (None, None), False),  # stops the gradient
    ],
)
def test_nothing_is_told_of_others(run_dir, backward, known_has_gradient):
    train(run_dir, backward, known_has_gradient=known_has_gradient)
    assert astray(run_dir) == {"Defect": [0, 0, 0]}


def test_the_training_is_the_same_bit_for_bit(run_dir):
    def backward(slope, known):
        return slope, None

    assert train(run_dir, backward) == train(run_dir, backward, watch=False)


def test_without_functions_of_ones_own_nothing_is_told(run_dir):
    torch.manual_seed(0)
    model = nn.Linear(6, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.randn(16, 6)).square().mean().backward()
            optimizer.step()
    assert astray(run_dir) == {}


class Rounded(torch.autograd.Function):
    """Rows rounded to those of a table, or less a level; their gradient is passed on as it is."""

    @staticmethod
    def forward(ctx, rows, table):
        if table.shape == rows.shape:
            return (rows - table).round()
        return table[torch.cdist(rows, table).argmin(1)] if table.dim() == 2 else rows - table

    @staticmethod
    def backward(ctx, upstream):
        return upstream, None


class Checkpointed(torch.autograd.Function):
    """A block that is computed again; the second input makes it run where the first is data."""

    @staticmethod
    def forward(ctx, rows, dummy, block):
        ctx.block = block
        ctx.save_for_backward(rows)
        return block(rows)

    @staticmethod
    def backward(ctx, upstream):
        rows = ctx.saved_tensors[0].detach().requires_grad_(True)
        with torch.enable_grad():
            out = ctx.block(rows)
        torch.autograd.backward(out, upstream)
        return rows.grad, None, None


class OfData(nn.Module):
    """Whose first operation is a function of data and of something that needs a gradient."""

    def __init__(self, kind):
        super().__init__()
        shapes = {"table": (5, 6), "level": (), "as_many": (16, 6), "checkpoint": (1,)}
        self.given = nn.Parameter(torch.rand(shapes[kind]))
        self.block = nn.Linear(6, 6)
        self.last = nn.Linear(6, 4)
        self.kind = kind

    def forward(self, x):
        if self.kind == "checkpoint":
            return self.last(Checkpointed.apply(x, self.given, self.block))
        return self.last(Rounded.apply(x, self.given))


@pytest.mark.parametrize("kind", ["table", "level", "as_many", "checkpoint"])
def test_a_gradient_for_data_is_not_told(run_dir, kind):
    torch.manual_seed(0)
    model = OfData(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with td.watch(model, optimizer, run_dir=run_dir, supervise=False, rules=["detached_loss"]):
        for _ in range(12):
            optimizer.zero_grad()
            loss = model(torch.randn(16, 6)).square().mean() + model.given.square().mean()
            loss.backward()
            optimizer.step()
    name = "Checkpointed" if kind == "checkpoint" else "Rounded"
    assert astray(run_dir) == {name: [0, 0, 0]}


def test_functions_of_installed_packages_are_not_looked_at(tmp_path, monkeypatch):
    package = tmp_path / "site-packages"
    package.mkdir()
    (package / "somebodys_kernels.py").write_text(
        "import torch\n\n\n"
        "class Kernel(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        return 2 * x\n\n"
        "    @staticmethod\n"
        "    def backward(ctx, upstream):\n"
        "        return 2 * upstream\n"
    )
    monkeypatch.syspath_prepend(str(package))
    import somebodys_kernels

    x = torch.ones(3, requires_grad=True)
    assert not written_by_user(somebodys_kernels.Kernel.apply(x).grad_fn)
    assert written_by_user(Rounded.apply(x, torch.zeros(())).grad_fn)
