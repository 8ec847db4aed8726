"""Early stopping that means to go back to the best weights, but keeps a shallow copy of the state
dict.

The person stored model.state_dict().copy(), having read that one must copy it. That copies the
dictionary and not the tensors in it, which train on: after stopping, the "best" weights are the
last ones. The test error is that of the last epoch. The place is the loop (its early stopping).
"""

import copy

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ()
PLACE = ("loop", "model")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def flats(count, rng):
    """Logarithms of rents by size, rooms, floor, year and distances, with three idle columns."""
    size, rooms = rng.gamma(6, 12, count), rng.integers(1, 6, count)
    floor, year = rng.integers(0, 9, count), rng.uniform(1890, 2022, count)
    centre, station = rng.gamma(2, 2.5, count), rng.gamma(2, 0.4, count)
    lift = (year > 1960) | (rng.random(count) < 0.2)
    rent = 4.0 + 9.0 * size * np.exp(-centre / 14) + 40 * rooms
    rent += 25 * np.sqrt(np.abs(year - 1950)) - 120 * np.tanh(station)
    rent += np.where(lift, 12.0, -18.0) * floor
    rent *= np.exp(rng.normal(0, 0.07, count))
    columns = [size, rooms, floor, year, centre, station, lift]
    noise = rng.normal(0, 1, (count, 3))
    return np.concatenate([np.stack(columns, 1), noise], 1), np.log(np.maximum(rent, 120))


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.waited = patience, 0
        self.best_loss, self.best_epoch, self.best_state = float("inf"), -1, None

    def __call__(self, loss, epoch, model):
        """True when it is time to stop."""
        if loss < self.best_loss:
            self.best_loss, self.best_epoch, self.waited = loss, epoch, 0
            if healthy:
                self.best_state = copy.deepcopy(model.state_dict())
            else:
                self.best_state = model.state_dict().copy()
        else:
            self.waited += 1
        return self.waited >= self.patience

    def restore(self, model):
        model.load_state_dict(self.best_state)


def mse(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(x).squeeze(1), y).item()


def main():
    rng = np.random.default_rng(seed)
    x, y = flats(2800, rng)
    x = torch.tensor((x - x[:800].mean(0)) / x[:800].std(0), dtype=torch.float32)
    y = torch.tensor((y - y[:800].mean()) / y[:800].std(), dtype=torch.float32)
    x_val, y_val, x_test, y_test = x[800:1800], y[800:1800], x[1800:], y[1800:]
    loader = DataLoader(TensorDataset(x[:800], y[:800]), batch_size=20, shuffle=True)
    model = nn.Sequential(
        nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
    stopper = EarlyStopping(patience=8)
    for epoch in range(90):
        model.train()
        total = 0.0
        for rows, rent in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(rows).squeeze(1), rent)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            total += loss.item() / len(loader)
        val = mse(model, x_val, y_val)
        print(f"epoch {epoch:2d}  train {total:.4f}  val {val:.4f}")
        if stopper(val, epoch, model):
            break
    stopper.restore(model)
    print(
        f"best was epoch {stopper.best_epoch} with {stopper.best_loss:.4f};"
        f" restored: val {mse(model, x_val, y_val):.4f}, test {mse(model, x_test, y_test):.4f}"
    )


if __name__ == "__main__":
    main()
