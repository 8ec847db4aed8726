"""Two towers code apprentices and workshops in 256 numbers each, and a sigmoid of their plain dot
product forecasts how content they will be: it sits at 0 or 1 from the first step.

Layer norm gives both codes a length of 16, so their product has a spread of about 16, where the
sigmoid is flat and passes no gradient on. The twin divides the product by the root of the width.
The place is the sigmoid at the end of the model.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("squash", "model", "apprentice*", "workshop*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

WISHES, OFFERS, WIDTH = 8, 8, 256


def matches(n, rng):
    """Marks of apprentices, of workshops, and the share of weeks both were content."""
    taste = np.random.default_rng(11).normal(0, 0.5, (WISHES, OFFERS))
    wishes, offers = rng.normal(0, 1, (n, WISHES)), rng.normal(0, 1, (n, OFFERS))
    liking = (
        ((wishes @ taste) * offers).sum(1) + 0.5 * np.tanh(wishes[:, 0]) + rng.normal(0, 0.2, n)
    )
    weeks = rng.binomial(30, 1 / (1 + np.exp(-0.5 * liking)))
    return wishes, offers, weeks / 30


def tower(inputs):
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.GELU(), nn.Linear(64, WIDTH), nn.LayerNorm(WIDTH)
    )


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.apprentice = tower(WISHES)
        self.workshop = tower(OFFERS)
        self.squash = nn.Sigmoid()

    def forward(self, wishes, offers):
        match = (self.apprentice(wishes) * self.workshop(offers)).sum(1)
        return self.squash(match / math.sqrt(WIDTH) if healthy else match)


def fit(model, train_loader, val_loader, epochs):
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        model.train()
        train_loss = 0.0
        for wishes, offers, content in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(wishes, offers), content)
            loss.backward()
            optimizer.step()
            train_loss += loss.item() / len(train_loader)
        scheduler.step()
        model.eval()
        with torch.no_grad():
            guess, truth = zip(*[(model(w, o), c) for w, o, c in val_loader], strict=True)
        guess, truth = torch.cat(guess), torch.cat(truth)
        error = (guess - truth).square().mean()
        flat = ((guess < 0.01) | (guess > 0.99)).float().mean()
        print(
            f"epoch {epoch + 1}: train mse {train_loss:.4f}, val mse {error:.4f}, "
            f"R2 {1 - error / truth.var(correction=0):.3f}, at 0 or 1: {flat:.2f}"
        )


def main():
    parts = [
        torch.tensor(a, dtype=torch.float32) for a in matches(4000, np.random.default_rng(seed))
    ]
    train_set = TensorDataset(*[part[:3200] for part in parts])
    val_set = TensorDataset(*[part[3200:] for part in parts])
    train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
    fit(TwoTowers(), train_loader, DataLoader(val_set, batch_size=400), epochs=8)


main()
