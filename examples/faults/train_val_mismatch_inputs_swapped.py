"""A beach erosion net takes the profiles before and after a storm, and validation hands them over
in alphabetical order.

The person calls the net with named columns in the training step, but wrote the evaluation for any
set of inputs: it takes the names of the batch sorted, and "after" comes before "before". Training
is good and validation gives the sign of the loss of sand wrong. The place is the input of the
validation.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input", "loop", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

POINTS = 36


def surveyed_beaches(count, rng):
    """Heights across the beach before and after a storm, and the sand lost above the water line."""
    across = np.linspace(0, 1, POINTS)
    slope = rng.uniform(3.0, 6.0, (count, 1))
    dune = rng.uniform(0.5, 2.5, (count, 1)) * np.exp(-(((across - 0.15) / 0.1) ** 2))
    before = 4 - slope * across + dune
    surge = rng.uniform(0.2, 1.8, (count, 1))
    front = rng.uniform(0.1, 0.4, (count, 1))
    cut = surge * np.exp(-(((across - front) / 0.12) ** 2))
    bar = 0.5 * surge * np.exp(-(((across - front - 0.4) / 0.1) ** 2))
    after = before - cut + bar
    lost = np.where(before > 0, before - after, 0).clip(min=0).mean(1) * 10
    noise = rng.normal(0, 0.08, (2, count, POINTS))
    before, after = before + noise[0], after + noise[1]
    return before, after, lost


def as_samples(before, after, lost, scale):
    before, after = (
        torch.tensor((part - scale["mean"]) / scale["std"], dtype=torch.float32)
        for part in (before, after)
    )
    lost = torch.tensor((lost - scale["lost_mean"]) / scale["lost_std"], dtype=torch.float32)
    return [
        {"before": b, "after": a, "lost": t} for b, a, t in zip(before, after, lost, strict=True)
    ]


class ErosionNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.profile = nn.Sequential(
            nn.Conv1d(2, 16, 5, padding=2),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.Conv1d(16, 24, 5, padding=2, stride=2),
            nn.BatchNorm1d(24),
            nn.ReLU(),
        )
        self.lost = nn.Sequential(nn.Flatten(), nn.Linear(24 * 18, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, before, after):
        return self.lost(self.profile(torch.stack([before, after], 1)))[:, 0]


class Experiment:
    def __init__(self, train, held_out, epochs=8):
        self.train_loader = DataLoader(train, 40, shuffle=True)
        self.val_loader = DataLoader(held_out, 100)
        self.net, self.epochs = ErosionNet(), epochs
        self.optimizer = torch.optim.AdamW(self.net.parameters(), lr=2e-3, weight_decay=1e-3)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)

    def train(self):
        self.net.train()
        losses = []
        for batch in self.train_loader:
            answer = self.net(batch["before"], batch["after"])
            loss = (answer - batch["lost"]).square().mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.schedule.step()
        return np.mean(losses)

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        squares = []
        for batch in self.val_loader:
            target = batch.pop("lost")
            names = batch if healthy else sorted(batch)
            answer = self.net(*[batch[name] for name in names])
            squares.append((answer - target).square())
        squares = torch.cat(squares)
        return squares.mean().item(), 1 - squares.mean().item()

    def run(self):
        for epoch in range(1, self.epochs + 1):
            loss = self.train()
            val, explained = self.evaluate()
            print(f"epoch {epoch:2d}  train {loss:.4f}  val {val:.4f}  explained {explained:.4f}")


def main():
    before, after, lost = surveyed_beaches(1500, np.random.default_rng(88 + seed))
    scale = {
        "mean": before[:1200].mean(),
        "std": before[:1200].std(),
        "lost_mean": lost[:1200].mean(),
        "lost_std": lost[:1200].std(),
    }
    train = as_samples(before[:1200], after[:1200], lost[:1200], scale)
    held_out = as_samples(before[1200:], after[1200:], lost[1200:], scale)
    Experiment(train, held_out).run()


main()
