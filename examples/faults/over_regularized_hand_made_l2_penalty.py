"""Digits with an MLP: an L2 term over all parameters, added to the loss by hand.

The colleague adds `reg * sum(p.pow(2).sum())` because "PyTorch has no kernel regulariser", with
the factor 0.05 that a Keras notebook had for a single small layer of its own. All weights shrink
and stay small; the loss that is printed goes down all the same, since the penalty does. The place
is the loss. The twin's factor is 1e-4.
"""

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("loss", "optimizer")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class Trainer:
    def __init__(self, model, train, val, lr=2e-3, reg=1e-4 if healthy else 0.05):
        self.model, self.train, self.val, self.reg = model, train, val, reg
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()

    def penalty(self):
        return self.reg * sum(p.pow(2).sum() for p in self.model.parameters())

    def epoch(self):
        self.model.train()
        total = 0.0
        for x, y in self.train:
            loss = self.criterion(self.model(x), y) + self.penalty()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() / len(self.train)
        return total

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        logits = [(self.model(x), y) for x, y in self.val]
        loss = sum(self.criterion(z, y).item() for z, y in logits) / len(logits)
        hits = sum((z.argmax(1) == y).sum().item() for z, y in logits)
        return loss, hits / sum(len(y) for _, y in logits)

    def fit(self, epochs):
        for n in range(epochs):
            train_loss = self.epoch()
            val_loss, accuracy = self.evaluate()
            if n % 5 == 4:
                print(
                    f"epoch {n + 1:3d} loss {train_loss:.3f} val {val_loss:.3f} acc {accuracy:.3f}"
                )


x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
Trainer(
    model,
    DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True),
    DataLoader(TensorDataset(x_val, y_val), batch_size=225),
).fit(20)
