"""Demand of the next day from four weeks of sales; every step draws the very same windows.

The step-based loop takes its windows from `get_batch`. To make runs repeatable, the generator with
the fixed seed was put into that function, so that each call starts it anew and gives the same 64
windows. The loss goes to nothing; the validation does not. The place is the data. The twin makes
the generator once.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "repeated_batch"
ACCEPT = ()
PLACE = ("input*", "loader", "loop")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
CONTEXT, STEPS, BATCH, EVERY = 28, 500, 64, 50


def sales(shops=40, days=400):
    """Weekly rhythm, slow season, an autoregressive level of its own and noise, per shop."""
    r = np.random.default_rng(1000 + seed)
    t = np.arange(days)
    week = r.normal(0, 0.7, (shops, 7))[:, t % 7]
    season = 0.6 * np.sin(2 * np.pi * (t / 180 + r.uniform(0, 1, (shops, 1))))
    level = np.zeros((shops, days))
    for d in range(1, days):
        level[:, d] = 0.85 * level[:, d - 1] + r.normal(0, 0.25, shops)
    x = week + season + level + r.normal(0, 0.2, (shops, days))
    return torch.tensor(x / x[:, :300].std(), dtype=torch.float32)


series = sales()
splits = {"train": series[:, :320], "val": series[:, 320 - CONTEXT :]}
generator = np.random.default_rng(seed)


def get_batch(split):
    rng = generator if healthy else np.random.default_rng(seed)
    values = splits[split]
    shop = rng.integers(0, len(values), BATCH)
    start = rng.integers(0, values.shape[1] - CONTEXT, BATCH)
    windows = torch.stack(
        [values[s, d : d + CONTEXT + 1] for s, d in zip(shop, start, strict=False)]
    )
    return windows[:, :CONTEXT, None], windows[:, CONTEXT]


class DemandGRU(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.gru = nn.GRU(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x):
        _, last = self.gru(x)
        return self.head(last[0]).squeeze(-1)


def all_windows(values):
    windows = values.unfold(1, CONTEXT + 1, 3).reshape(-1, CONTEXT + 1)
    return windows[:, :CONTEXT, None], windows[:, CONTEXT]


@torch.no_grad()
def validate(model):
    model.eval()
    x, y = all_windows(splits["val"])
    error = nn.functional.mse_loss(model(x), y).item()
    model.train()
    return error, error / y.var().item()


model = DemandGRU()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS, eta_min=2e-4)
model.train()
for step in range(1, STEPS + 1):
    x, y = get_batch("train")
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    if step % EVERY == 0:
        error, share = validate(model)
        print(f"step {step}: train {loss.item():.4f} val {error:.4f} ({share:.2f} of variance)")
