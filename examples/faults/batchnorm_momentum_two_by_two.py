"""Predicts the strength of concrete with batch norm while only two rows pass at a time, gradients
gathered over 16 turns.

The person ran out of memory, made the batches as small as two and gathered the gradients of
sixteen of them, taking this for the same as a batch of 32. Each batch norm layer still sees two
rows, of which it makes a -1 and a +1. The place is the batch norm layers (and the loader that
feeds them).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("model", "loader", "input", "body*", "*norm*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

EFFECTIVE_BATCH = 32
MICRO_BATCH = 32 if healthy else 2
TURNS = EFFECTIVE_BATCH // MICRO_BATCH
EPOCHS = 16


def mixes(count, rng):
    """Cement, slag, ash, water, plasticiser, coarse, fine, age; strength by a rough Abrams law."""
    cement, slag = rng.uniform(120, 520, count), rng.gamma(1.0, 70, count)
    ash, water = rng.gamma(1.0, 50, count), rng.uniform(130, 230, count)
    plasticiser = rng.gamma(2.0, 3.0, count)
    coarse, fine = rng.normal(970, 80, count), rng.normal(770, 80, count)
    age = rng.choice([3, 7, 14, 28, 56, 90, 180], count)
    binder = cement + 0.8 * slag + 0.5 * ash
    ratio = water * (1 - 0.012 * np.minimum(plasticiser, 15)) / binder
    strength = 110 / 5.5**ratio * (0.35 + 0.65 * age / (age + 8.0))
    strength *= 1 - 0.08 * np.abs(fine / (fine + coarse) - 0.44) / 0.05
    strength += rng.normal(0, 1.5, count)
    columns = [cement, slag, ash, water, plasticiser, coarse, fine, np.log(age)]
    return np.stack(columns, 1), strength


def block(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU())


class StrengthNet(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.body = nn.Sequential(block(features, 64), block(64, 64), block(64, 32))
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.body(x)).squeeze(1)


def scores(model, x, y):
    model.eval()
    with torch.no_grad():
        error = model(x) - y
    return error.pow(2).mean().item(), 1 - error.pow(2).mean().item() / y.var().item()


def main():
    rng = np.random.default_rng(seed)
    x, y = mixes(1480, rng)
    x = torch.tensor((x - x[:1120].mean(0)) / x[:1120].std(0), dtype=torch.float32)
    y = torch.tensor((y - y[:1120].mean()) / y[:1120].std(), dtype=torch.float32)
    loader = DataLoader(
        TensorDataset(x[:1120], y[:1120]), batch_size=MICRO_BATCH, shuffle=True, drop_last=True
    )
    model = StrengthNet(x.shape[1])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        optimizer.zero_grad()
        for turn, (rows, strength) in enumerate(loader, 1):
            loss = nn.functional.mse_loss(model(rows), strength)
            (loss / TURNS).backward()
            if turn % TURNS == 0:
                optimizer.step()
                optimizer.zero_grad()
            total += loss.item() / len(loader)
        scheduler.step()
        val, explained = scores(model, x[1120:], y[1120:])
        print(f"epoch {epoch + 1:2d}: train {total:.4f}, val {val:.4f}, R2 {explained:.3f}")


if __name__ == "__main__":
    main()
