"""Trains a regression MLP on Friedman's problem with an early stopping that wants the loss to fall
by 0.05 each epoch.

The steady progress of SGD is smaller than min_delta, so patience runs out while the validation loss
falls in every epoch, and the training ends far above what it would reach. The twin has a min_delta
of 0.0005. The place is the loop.
"""

import torch
from data import arguments, standardise
from sklearn.datasets import make_friedman1
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience = patience
        self.min_delta = min_delta
        self.best = float("inf")
        self.bad = 0

    def __call__(self, loss):
        if loss < self.best - self.min_delta:
            self.best = loss
            self.bad = 0
        else:
            self.bad += 1
        return self.bad >= self.patience


def main():
    healthy, seed = arguments(__doc__)
    features, target = make_friedman1(n_samples=3000, n_features=5, noise=0.5, random_state=seed)
    features = torch.tensor(features, dtype=torch.float32)
    target = torch.tensor(target, dtype=torch.float32)
    x, x_val = standardise(features[:2400], features[2400:])
    y, y_val = standardise(target[:2400], target[2400:])

    model = nn.Sequential(
        nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.8)
    loss_fn = nn.MSELoss()
    stop = EarlyStopping(patience=3, min_delta=5e-4 if healthy else 0.05)

    for epoch in range(1, 41):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(64):
            loss = loss_fn(model(x[rows]).squeeze(1), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        model.eval()
        with torch.no_grad():
            val = loss_fn(model(x_val).squeeze(1), y_val).item()
        print(f"epoch {epoch:2d} train {total / len(x):.4f} val {val:.4f}")
        if stop(val):
            print(f"stopped: no improvement of {stop.min_delta} for {stop.patience} epochs")
            break


if __name__ == "__main__":
    main()
