"""Grape of a wine from its chemistry, with gradient accumulation over more batches than there are.

The number of batches to accumulate came from a large project. Here an epoch has 34 batches, the
counter starts anew each epoch and so do the gradients, hence the condition for a step is never
met. The code runs through, the loss stays where it began.
The place is the optimizer / the loop.
The twin accumulates 4 batches.
"""

import torch
from data import arguments, wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = True
EARLY = True


class Config:
    batch_size = 4
    lr = 5e-3
    epochs = 15
    accumulate = 64


class Trainer:
    def __init__(self, model, config):
        self.model, self.config = model, config
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, loader, x_val, y_val):
        for epoch in range(self.config.epochs):
            loss = self.train_epoch(loader)
            if epoch % 3 == 2:
                print(f"epoch {epoch + 1}: loss {loss:.4f}, val acc {self.test(x_val, y_val):.3f}")

    def train_epoch(self, loader):
        self.model.train()
        self.optimizer.zero_grad()
        total = 0.0
        for i, (x, y) in enumerate(loader):
            loss = self.criterion(self.model(x), y)
            (loss / self.config.accumulate).backward()
            if (i + 1) % self.config.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def test(self, x, y):
        self.model.eval()
        return (self.model(x).argmax(1) == y).float().mean().item()


def main():
    healthy, seed = arguments(__doc__)
    config = Config()
    if healthy:
        config.accumulate = 4
    x, y, x_val, y_val = wine(seed)
    loader = DataLoader(TensorDataset(x, y), config.batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
    Trainer(model, config).fit(loader, x_val, y_val)


if __name__ == "__main__":
    main()
