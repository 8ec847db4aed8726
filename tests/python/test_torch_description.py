"""What a run holds about its model, its optimizers and its loader, for who looks for a cause."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

import traindbg as td

DATA = TensorDataset(torch.zeros(40, 4), torch.zeros(40, 1))


def described(run_dir, loader, groups=None) -> td.Run:
    model = nn.Sequential(
        nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 1))
    )
    optimizer = torch.optim.SGD(groups(model) if groups else model.parameters(), lr=0.01)
    watcher = td.watch(model, optimizer, run_dir=run_dir, supervise=False)
    for x, y in loader:
        optimizer.zero_grad()
        F.mse_loss(model(x), y).backward()
        optimizer.step()
    watcher.detach()
    return td.Run(run_dir)


def facts(run: td.Run) -> dict[str, str]:
    return dict(run.worker_meta()["environment"])


def test_modules_without_modules_are_counted_by_type(run_dir):
    assert facts(described(run_dir, []))["module_types"] == "Linear=3 ReLU=1"


def test_how_the_loader_is_set(run_dir, tmp_path):
    told = facts(described(run_dir, DataLoader(DATA, batch_size=10)))
    assert told["loader_shuffles"] == "false"
    assert told["loader_batch_size"] == "10"
    assert told["loader_workers"] == "0"
    told = facts(described(tmp_path / "b", DataLoader(DATA, batch_size=10, shuffle=True)))
    assert told["loader_shuffles"] == "true"


def test_a_sampler_may_do_either(run_dir):
    sampler = WeightedRandomSampler(torch.ones(40), 40)
    told = facts(described(run_dir, DataLoader(DATA, batch_size=4, sampler=sampler)))
    assert "loader_shuffles" not in told
    assert told["loader_batch_size"] == "4"


def test_the_extremes_of_learning_rates_that_differ(run_dir, tmp_path):
    def groups(model):
        rates = (0.1, 0.001, 5.0)
        return [
            {"params": [p], "lr": rate} for p, rate in zip(model.parameters(), rates, strict=False)
        ]

    settings = described(run_dir, DataLoader(DATA), groups).worker_meta()["optimizers"][0][
        "settings"
    ]
    assert (settings["lr"], settings["lr_min"], settings["lr_max"]) == (0.1, 0.001, 5.0)
    alike = described(tmp_path / "b", DataLoader(DATA)).worker_meta()["optimizers"][0]["settings"]
    assert "lr_min" not in alike
