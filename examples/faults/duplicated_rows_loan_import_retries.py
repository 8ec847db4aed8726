"""A loan risk model's table holds one branch forty times, as its import was retried and appended.

The importer sends the first branch's file again until the server confirms, and the table has no
primary key, so every one of its loans is in the training set forty times. The other branches are
drowned, and the model knows one branch by heart. The place is the input: the table of loans.
"""

import sqlite3
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments, standardise
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    features: int = 10
    loans_per_branch: int = 150
    branches: int = 8
    batch_size: int = 64
    steps: int = 500
    lr: float = 1e-3


def branch_file(branch: int, cfg: Config, r: np.random.Generator) -> list[tuple]:
    """The loans of a branch: an id, the features, and whether the loan was paid back."""
    x = r.normal(0, 1, (cfg.loans_per_branch, cfg.features))
    x[:, 0] += 0.3 * (branch - 3)
    score = 1.5 * x[:, 0] * (x[:, 1] > 0) + 1.2 * x[:, 2] - np.abs(x[:, 3])
    score = score + 0.8 * x[:, 4] * x[:, 5]
    paid = score + 0.5 + r.logistic(0, 0.6, len(x)) > 0
    return [(f"B{branch}-{i}", *x[i].tolist(), int(paid[i])) for i in range(len(x))]


class LoanStore:
    """The table of loans, filled by an importer that sends a file again until it is confirmed."""

    def __init__(self, cfg: Config) -> None:
        self.connection = sqlite3.connect(":memory:")
        columns = ", ".join(f"f{i} REAL" for i in range(cfg.features))
        key = "TEXT PRIMARY KEY" if healthy else "TEXT"
        self.connection.execute(f"CREATE TABLE loans (id {key}, {columns}, paid INTEGER)")

    def receive(self, rows: list[tuple], times_sent: int) -> None:
        marks = ", ".join("?" * len(rows[0]))
        for _ in range(times_sent):
            self.connection.executemany(f"INSERT OR IGNORE INTO loans VALUES ({marks})", rows)

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        rows = [row[1:] for row in self.connection.execute("SELECT * FROM loans ORDER BY rowid")]
        table = torch.tensor(rows, dtype=torch.float32)
        return table[:, :-1], table[:, -1]


def main() -> None:
    cfg = Config()
    r = np.random.default_rng(seed)
    store, held_out = LoanStore(cfg), []
    for branch in range(cfg.branches):
        store.receive(branch_file(branch, cfg, r), times_sent=40 if branch == 0 else 1)
        held_out += branch_file(branch, cfg, r)
    x, y = store.tensors()
    val = torch.tensor([row[1:] for row in held_out], dtype=torch.float32)
    x, x_val = standardise(x, val[:, :-1])
    loader = DataLoader(TensorDataset(x, y), cfg.batch_size, shuffle=True)
    model = nn.Sequential(
        nn.Linear(cfg.features, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=0.01)
    loss_fn, step = nn.BCEWithLogitsLoss(), 0
    while step < cfg.steps:
        for features, paid in loader:
            loss = loss_fn(model(features).squeeze(1), paid)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                model.eval()
                with torch.no_grad():
                    auc = roc_auc_score(val[:, -1], model(x_val).squeeze(1))
                model.train()
                print(f"step {step}: loss {loss.item():.3f}, AUC of held-out loans {auc:.3f}")
            if step == cfg.steps:
                break


main()
