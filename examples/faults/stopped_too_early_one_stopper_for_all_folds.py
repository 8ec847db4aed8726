"""Five-fold cross-validation of a gas sensor model, whose later folds stop after one epoch.

The person makes the early stopper once, before the loop over the folds. Its counter is full and
its best value is that of the first fold when the second fold starts, so that every later fold
stops as soon as one epoch does not beat a finished model. The place is the loop (Experiment.run).
"""

import copy

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.model_selection import KFold
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class EarlyStopper:
    def __init__(self, patience: int):
        self.patience = patience
        self.best = float("inf")
        self.waited = 0

    def keep_going(self, value: float) -> bool:
        if value < self.best:
            self.best = value
            self.waited = 0
        else:
            self.waited += 1
        return self.waited < self.patience


def sensor_array(n: int):
    """Eight metal oxide sensors in a mixture of two gases, with humidity and temperature."""
    r = np.random.default_rng(700 + seed)
    gases = r.gamma(2.0, 1.0, (n, 2))
    humidity, temperature = r.uniform(0.2, 0.9, n), r.uniform(15, 35, n)
    gain = r.uniform(0.2, 1.0, (2, 8))
    drift = r.normal(0, 0.15, 8)
    response = np.log1p(gases @ gain) * (1 - 0.35 * humidity[:, None])
    response += drift * (temperature[:, None] - 25) / 10 + r.normal(0, 0.02, (n, 8))
    x = np.concatenate([response, humidity[:, None], temperature[:, None]], 1)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(gases, dtype=torch.float32)


class Experiment:
    def __init__(self, x, y, folds=5, max_epochs=120, batch_size=64, lr=4e-3, patience=12):
        self.x, self.y = x, y
        self.folds, self.max_epochs, self.batch_size = folds, max_epochs, batch_size
        self.lr, self.patience = lr, patience

    def new_model(self):
        return nn.Sequential(
            nn.Linear(10, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, 2)
        )

    def train_epoch(self, model, optimizer, x, y):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(self.batch_size):
            loss = ((model(x[rows]) - y[rows]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        return total / len(x)

    @torch.no_grad()
    def validate(self, model, x, y):
        model.eval()
        return F.mse_loss(model(x), y).item()

    def fit_fold(self, stopper, train_rows, val_rows):
        x, x_val = standardise(self.x[train_rows], self.x[val_rows])
        y, y_val = standardise(self.y[train_rows], self.y[val_rows])
        model = self.new_model()
        optimizer = torch.optim.Adam(model.parameters(), lr=self.lr)
        best, best_weights = float("inf"), None
        for epoch in range(self.max_epochs):
            train_loss = self.train_epoch(model, optimizer, x, y)
            val_loss = self.validate(model, x_val, y_val)
            if epoch % 20 == 0:
                print(f"    epoch {epoch:3d}  train {train_loss:.4f}  val {val_loss:.4f}")
            if val_loss < best:
                best, best_weights = val_loss, copy.deepcopy(model.state_dict())
            if not stopper.keep_going(val_loss):
                break
        model.load_state_dict(best_weights)
        return epoch + 1, self.validate(model, x_val, y_val)

    def run(self):
        results = []
        stopper = EarlyStopper(self.patience)
        splitter = KFold(self.folds, shuffle=True, random_state=seed)
        for fold, (train_rows, val_rows) in enumerate(splitter.split(self.x)):
            if healthy:
                stopper = EarlyStopper(self.patience)
            print(f"fold {fold}")
            epochs, val_loss = self.fit_fold(stopper, train_rows, val_rows)
            print(f"  stopped after {epochs} epochs, val {val_loss:.4f}")
            results.append(val_loss)
        return results


def main():
    experiment = Experiment(*sensor_array(1000))
    results = experiment.run()
    print(f"cross-validated mse {np.mean(results):.4f} +- {np.std(results):.4f}")


if __name__ == "__main__":
    main()
