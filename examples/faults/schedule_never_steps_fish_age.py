"""Age of fish by the rings of their ear stones; the one-cycle schedule waits for the word "batch".

The trainer steps the schedule after a batch or after an epoch, as `interval` says. In the
configuration of this run stands "step", which neither place knows: the rate stays at the first
value of the cycle, a twenty-fifth of what was meant.
The place is the optimizer and the schedule. The twin's configuration says "batch".
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = True


class Trainer:
    def __init__(self, model, config, batches):
        self.model, self.config = model, config
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, config["lr"], total_steps=batches * config["epochs"]
        )

    def epoch(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            loss = nn.functional.huber_loss(self.model(x).squeeze(1), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.config["interval"] == "batch":
                self.schedule.step()
            total += loss.item()
        if self.config["interval"] == "epoch":
            self.schedule.step()
        return total / len(loader)

    @torch.no_grad()
    def error(self, loader):
        self.model.eval()
        gaps = torch.cat([(self.model(x).squeeze(1) - y).abs() for x, y in loader])
        return gaps.mean().item()


def ear_stones(n, g):
    """The brightness along a line from the core: a ring for each year, narrower ones later."""
    age = torch.randint(1, 12, (n, 1), generator=g).float()
    radius = torch.linspace(0, 1, 96)
    growth = 0.75 + 0.35 * torch.rand(n, 1, generator=g)
    rings = torch.cos(2 * math.pi * age * radius**growth)
    x = rings + 0.3 * torch.randn(n, 96, generator=g)
    return x.unsqueeze(1), (age.squeeze(1) - 6) / 3


def main():
    healthy, seed = arguments(__doc__)
    config = {"lr": 5e-3, "epochs": 12, "interval": "batch" if healthy else "step"}
    x, y = ear_stones(1500, torch.Generator().manual_seed(seed))
    train = DataLoader(TensorDataset(x[:1200], y[:1200]), batch_size=40, shuffle=True)
    val = DataLoader(TensorDataset(x[1200:], y[1200:]), batch_size=100)
    model = nn.Sequential(
        nn.Conv1d(1, 16, 7, padding=3),
        nn.BatchNorm1d(16),
        nn.ReLU(),
        nn.MaxPool1d(3),
        nn.Conv1d(16, 32, 5, padding=2),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(8),
        nn.Flatten(),
        nn.Linear(256, 1),
    )
    trainer = Trainer(model, config, len(train))
    for epoch in range(config["epochs"]):
        loss = trainer.epoch(train)
        if epoch % 2:
            print(f"epoch {epoch + 1}: loss {loss:.3f}, off by {3 * trainer.error(val):.2f} years")


if __name__ == "__main__":
    main()
