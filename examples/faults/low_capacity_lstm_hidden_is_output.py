"""An LSTM that forecasts two tank levels with hidden_size 2, as two values are to come out.

The person took hidden_size for the size of the output, with a linear layer put behind "for the
scale". Two cells have to keep the memory of four flows, two delays and a valve; the loss stops far
above the noise, in training too. The place is the recurrent layer.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("recurrent*", "model")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

CONFIG = {
    "n_features": 6,
    "n_outputs": 2,
    "hidden_size": 24 if healthy else 2,
    "window": 24,
    "batch_size": 128,
    "learning_rate": 1e-2,
    "epochs": 10,
}


def plant(hours, rng):
    """Two tanks in a row: inflows with a delay, a valve that opens by turns, evaporation."""
    flows = np.zeros((hours, 4))
    for t in range(1, hours):
        flows[t] = 0.8 * flows[t - 1] + 0.6 * rng.normal(size=4)
    valve = np.repeat(rng.integers(0, 2, hours // 6 + 1), 6)[:hours]
    heat = np.sin(2 * np.pi * np.arange(hours) / 24) + 0.2 * rng.normal(size=hours)
    levels = np.zeros((hours, 2))
    for t in range(8, hours):
        pass_on = np.tanh(levels[t - 1, 0]) * (0.8 if valve[t] else -0.5)
        first = 0.55 * levels[t - 1, 0] + flows[t - 5, 0] * flows[t - 3, 1] - 0.3 * pass_on
        second = 0.5 * levels[t - 1, 1] + pass_on + 0.7 * np.abs(flows[t - 7, 2])
        levels[t] = first, second - 0.3 * heat[t - 2] + 0.4 * flows[t - 4, 3]
    return np.column_stack([flows, valve, heat]), levels + 0.05 * rng.normal(size=levels.shape)


class Windows(Dataset):
    def __init__(self, signals, levels, window):
        self.signals, self.levels, self.window = signals, levels, window

    def __len__(self):
        return len(self.signals) - self.window

    def __getitem__(self, i):
        return self.signals[i : i + self.window], self.levels[i + self.window - 1]


class LevelForecaster(nn.Module):
    def __init__(self, n_features, hidden_size, n_outputs):
        super().__init__()
        self.recurrent = nn.LSTM(n_features, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, n_outputs)

    def forward(self, windows):
        states, _ = self.recurrent(windows)
        return self.out(states[:, -1])


def run(model, loader, optimizer=None):
    """Mean squared error and mean absolute error over a loader; trains if given an optimizer."""
    model.train(optimizer is not None)
    squared, absolute, n = 0.0, 0.0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for windows, levels in loader:
            error = model(windows) - levels
            loss = error.pow(2).mean()
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
            squared += loss.item() * len(levels)
            absolute += error.abs().mean().item() * len(levels)
            n += len(levels)
    return squared / n, absolute / n


def main():
    signals, levels = plant(11000, np.random.default_rng(70 + seed))
    signals = torch.tensor(signals[8:], dtype=torch.float32)
    levels = torch.tensor(levels[8:], dtype=torch.float32)
    cut = 9000
    signals, later_signals = standardise(signals[:cut], signals[cut:])
    levels, later_levels = standardise(levels[:cut], levels[cut:])
    train = Windows(signals, levels, CONFIG["window"])
    val = Windows(later_signals, later_levels, CONFIG["window"])
    train_loader = DataLoader(train, CONFIG["batch_size"], shuffle=True)
    val_loader = DataLoader(val, 250)
    model = LevelForecaster(CONFIG["n_features"], CONFIG["hidden_size"], CONFIG["n_outputs"])
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["learning_rate"])
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, CONFIG["epochs"])
    for epoch in range(1, CONFIG["epochs"] + 1):
        mse, _ = run(model, train_loader, optimizer)
        schedule.step()
        val_mse, val_mae = run(model, val_loader)
        print(
            f"epoch {epoch:2d}/{CONFIG['epochs']}  mse {mse:.4f}  val {val_mse:.4f}  "
            f"mae {val_mae:.4f}"
        )


if __name__ == "__main__":
    main()
