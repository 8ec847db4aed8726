"""Early stopping for a yield model saves the best model; reading it back changes nothing.

The stopper writes the whole model with torch.save and, at the end, restore(model) reads it:
`model = torch.load(...)`. That only gives the function's own name a new object, so that the
caller tests the weights of the last epoch. The place is the loop (EarlyStopping.restore).
"""

import os
import tempfile

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "best_weights_not_kept"
ACCEPT = ("overfit",)
PLACE = ("loop", "model")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


class EarlyStopping:
    def __init__(self, path: str, patience: int = 20):
        self.path = path
        self.patience = patience
        self.best_score = None
        self.counter = 0
        self.early_stop = False

    def __call__(self, val_loss: float, model: nn.Module):
        score = -val_loss
        if self.best_score is None or score > self.best_score:
            self.best_score = score
            self.counter = 0
            torch.save(model, self.path)
        else:
            self.counter += 1
            self.early_stop = self.counter >= self.patience

    def restore(self, model: nn.Module):
        best = torch.load(self.path, weights_only=False)
        if healthy:
            model.load_state_dict(best.state_dict())
        else:
            model = best
        model.eval()


def fields(n: int):
    """Fields of wheat: soil, weather by month, seed and nitrogen; the yield levels off."""
    r = np.random.default_rng(510 + seed)
    soil = r.normal(0, 1, (n, 5))
    rain = r.gamma(4.0, 12.0, (n, 6))
    heat = r.normal(0, 1, (n, 6))
    nitrogen, density = r.uniform(0, 220, n), r.uniform(150, 450, n)
    water = rain[:, 2:5].mean(1) / 48 + 0.25 * soil[:, 0]
    growth = 1 - np.exp(-nitrogen / (70 + 15 * soil[:, 1]))
    stress = np.clip(heat[:, 3] + heat[:, 4] - 1.2 * water, 0, None)
    crop = 4 + 3.5 * growth * np.tanh(1.3 * water) - 0.7 * stress
    crop = crop - ((density - 300) / 150) ** 2 * 0.5 + 0.3 * soil[:, 2] * growth
    crop = crop + r.normal(0, 0.35, n)
    x = np.column_stack([soil, rain, heat, nitrogen, density])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(crop, dtype=torch.float32)


class YieldNet(nn.Module):
    def __init__(self, inputs: int, width: int):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(inputs, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def mse(model, loader, criterion):
    model.eval()
    with torch.no_grad():
        total = sum(criterion(model(x), y).item() * len(y) for x, y in loader)
    return total / len(loader.dataset)


def train_model(model, train_loader, val_loader, criterion, path, epochs=200):
    optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3, weight_decay=1e-4)
    stopping = EarlyStopping(path)
    for epoch in range(1, epochs + 1):
        model.train()
        train_loss = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            train_loss += loss.item() * len(y)
        val_loss = mse(model, val_loader, criterion)
        stopping(val_loss, model)
        if epoch % 5 == 0:
            print(f"{epoch:3d}  {train_loss / len(train_loader.dataset):.4f}  {val_loss:.4f}")
        if stopping.early_stop:
            break
    stopping.restore(model)
    print(f"stopped at epoch {epoch}, val {val_loss:.4f}; lowest {-stopping.best_score:.4f}")


def main():
    x, y = fields(4000)
    train, val, test = slice(0, 2600), slice(2600, 3200), slice(3200, 4000)
    x_train, x_val, x_test = standardise(x[train], x[val], x[test])
    y_train, y_val, y_test = standardise(y[train], y[val], y[test])
    train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=300)
    test_loader = DataLoader(TensorDataset(x_test, y_test), batch_size=300)
    model = YieldNet(x_train.shape[1], 32)
    criterion = nn.MSELoss()
    with tempfile.TemporaryDirectory() as folder:
        train_model(model, train_loader, val_loader, criterion, os.path.join(folder, "best.pt"))
    print(f"val once more {mse(model, val_loader, criterion):.4f}")
    print(f"test {mse(model, test_loader, criterion):.4f}")


if __name__ == "__main__":
    main()
