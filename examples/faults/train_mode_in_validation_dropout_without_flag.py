"""Predicts the solubility of molecules; the net calls F.dropout without its training flag, so
validation drops units too.

The person wrote F.dropout(h, 0.3) into forward and switched the model to eval mode before
validating, as one should. The function does not know of that mode: its own default is to drop.
The reported error is too large and another one at each call. The place is the model in the
validation part of the loop.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

GROUPS = 40
RATE = 0.3


def molecules(count, rng):
    """How often each of forty groups occurs, with mass and rings; log solubility of each."""
    habits = rng.gamma(0.6, 1.0, GROUPS)
    counts = rng.poisson(habits * rng.uniform(0.4, 1.6, (count, 1)))
    mass = counts @ rng.uniform(12, 45, GROUPS)
    rings = rng.poisson(0.004 * mass)
    weight = np.random.default_rng(7).normal(0, 0.35, GROUPS)
    solubility = counts @ weight - 0.8 * np.sqrt(rings) - 0.004 * mass
    solubility += 0.5 * np.tanh(counts[:, 0] - counts[:, 1]) + rng.normal(0, 0.2, count)
    return np.column_stack([np.sqrt(counts), mass / 100, rings]), solubility


class SolubilityNet(nn.Module):
    def __init__(self, features, hidden=128):
        super().__init__()
        self.fc1 = nn.Linear(features, hidden)
        self.fc2 = nn.Linear(hidden, hidden)
        self.fc3 = nn.Linear(hidden, 1)

    def forward(self, x):
        h = F.relu(self.fc1(x))
        h = F.dropout(h, RATE, self.training) if healthy else F.dropout(h, RATE)
        h = F.relu(self.fc2(h))
        h = F.dropout(h, RATE, self.training) if healthy else F.dropout(h, RATE)
        return self.fc3(h).squeeze(-1)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 15, gamma=0.3)

    def fit_epoch(self, loader):
        self.model.train()
        losses = []
        for x, y in loader:
            loss = F.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.scheduler.step()
        return sum(losses) / len(losses)

    @torch.no_grad()
    def validate(self, loader):
        self.model.eval()
        errors = torch.cat([self.model(x) - y for x, y in loader])
        return errors.pow(2).mean().item(), errors.abs().mean().item()


def main():
    rng = np.random.default_rng(seed)
    x, y = molecules(2400, rng)
    x = torch.tensor((x - x[:1800].mean(0)) / (x[:1800].std(0) + 1e-6), dtype=torch.float32)
    y = torch.tensor((y - y[:1800].mean()) / y[:1800].std(), dtype=torch.float32)
    train = DataLoader(TensorDataset(x[:1800], y[:1800]), batch_size=60, shuffle=True)
    val = DataLoader(TensorDataset(x[1800:], y[1800:]), batch_size=300)
    trainer = Trainer(SolubilityNet(x.shape[1]), lr=2e-3)
    for epoch in range(35):
        train_loss = trainer.fit_epoch(train)
        val_loss, val_mae = trainer.validate(val)
        if epoch % 5 == 4:
            print(
                f"epoch {epoch + 1:2d} | train {train_loss:.4f}"
                f" | val {val_loss:.4f} (MAE {val_mae:.3f})"
            )
    again = trainer.validate(val)
    print(f"validated once more: {again[0]:.4f} (MAE {again[1]:.3f})")


if __name__ == "__main__":
    main()
