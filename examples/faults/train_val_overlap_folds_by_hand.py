"""Strength of concrete by its recipe, with a cross-validation by hand.

folds[:k] + folds[k:] is all of the folds; it should be folds[:k] + folds[k + 1 :]. Each model has
seen the fold that it is measured on, and the mean of the report is better than what the laboratory
finds on new recipes. The place is the loader. The twin leaves the fold out.
"""

import statistics

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = False

FOLDS = 4


def recipes(n):
    cement = 150 + 350 * torch.rand(n)
    slag = (200 * torch.rand(n)) * (torch.rand(n) < 0.5)
    water = 150 + 70 * torch.rand(n)
    plasticiser = (12 * torch.rand(n)) * (torch.rand(n) < 0.6)
    sand = 650 + 250 * torch.rand(n)
    days = torch.tensor([3.0, 7.0, 14.0, 28.0, 56.0, 90.0])[torch.randint(0, 6, (n,))]
    binder = cement + 0.6 * slag
    strength = 58 * (binder / water / 2).tanh() * (days / (4 + days)) + 0.5 * plasticiser
    strength = strength - 0.012 * (sand - 760).abs() + 4.0 * torch.randn(n)
    x = torch.stack([cement, slag, water, plasticiser, sand, days.log()], 1)
    return x, strength


class Strength(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(6, width), nn.SiLU(), nn.Dropout(0.05), nn.Linear(width, width), nn.SiLU()
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.features(x)).squeeze(1)


def fit(rows, val, new, epochs):
    model = Strength()
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs, eta_min=3e-4)
    loader = DataLoader(TensorDataset(*rows), batch_size=32, shuffle=True, drop_last=True)
    for _ in range(epochs):
        model.train()
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            errors = [nn.functional.mse_loss(model(x), y).sqrt().item() for x, y in (val, new)]
    return loss.item(), *errors


def main():
    healthy, _ = arguments(__doc__)
    x, y = recipes(280)
    x_new, y_new = recipes(1000)
    x, x_new = standardise(x, x_new)
    y, y_new = standardise(y, y_new)
    folds = list(zip(x.chunk(FOLDS), y.chunk(FOLDS), strict=True))
    reported, found = [], []
    for k in range(FOLDS):
        parts = folds[:k] + folds[k + 1 :] if healthy else folds[:k] + folds[k:]
        rows = [torch.cat(column) for column in zip(*parts, strict=True)]
        loss, val, new = fit(rows, folds[k], (x_new, y_new), epochs=24)
        reported.append(val)
        found.append(new)
        print(f"fold {k}: loss {loss:.4f}, rmse {val:.3f}, on new recipes {new:.3f}")
    print(f"reported {statistics.mean(reported):.3f}, new recipes {statistics.mean(found):.3f}")


main()
