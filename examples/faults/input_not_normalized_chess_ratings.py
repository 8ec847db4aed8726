"""Foretells the result of chess games from ratings and clocks; the columns come as they are.

The table has ratings of about 1,800, clocks in seconds, and an advantage in pawns from -9 to 9. The
training was written for a table that a colleague had scaled before, and the scaling was lost with
his notebook.
The place is the input. The twin standardises by the training games.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("input*", "0", "loader")
SILENT = True
EXACT = False
EARLY = True


def games(seed, n=2400):
    r = np.random.default_rng(700 + seed)
    white = r.normal(1800, 250, n)
    black = white + r.normal(0, 120, n)
    clock_white = r.uniform(5, 900, n)
    clock_black = np.clip(clock_white + r.normal(0, 150, n), 1, 900)
    pawns = r.normal(0, 2.0, n).clip(-9, 9)
    moves = r.integers(15, 60, n)
    edge = (white - black) / 90 + 1.1 * pawns + 2.0 * np.log(clock_white / clock_black)
    edge = edge + r.logistic(0, 1, n)
    result = np.where(edge < -1.2, 0, np.where(edge > 1.2, 2, 1))
    table = np.stack([white, black, clock_white, clock_black, pawns, moves], 1)
    return torch.tensor(table, dtype=torch.float32), torch.tensor(result)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x)
    model.train()
    loss = nn.functional.cross_entropy(logits, y).item()
    return loss, (logits.argmax(1) == y).float().mean().item()


def train(seed, scale):
    x, y = games(seed)
    x, x_val, y, y_val = x[:1800], x[1800:], y[:1800], y[1800:]
    if scale:
        x, x_val = standardise(x, x_val)
    loader = DataLoader(TensorDataset(x, y), batch_size=60, shuffle=True)
    model = nn.Sequential(
        nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 3)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    for epoch in range(20):
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if epoch % 2 == 1:
            val_loss, right = accuracy(model, x_val, y_val)
            print(f"{epoch + 1:2d} loss {loss.item():.3f} val {val_loss:.3f} right {right:.3f}")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    train(seed, scale=healthy)
