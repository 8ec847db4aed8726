"""Early stopping for a small data set of blood tests; the "best model" is the model itself.

The trainer keeps `self.best_model = self.model` at each best validation loss. That is another name
for the same object, which trains on: what is tested in the end are the last, overfitted weights.
The place is the loop, at the validation.
The twin keeps a deep copy.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "best_weights_not_kept"
ACCEPT = ("overfit",)
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def patients(n):
    x = torch.randn(n, 24)
    risk = x[:, 0] - 0.8 * x[:, 1] + 0.7 * x[:, 2] + 0.9 * torch.randn(n)
    return x, (risk > 0).long()


class Trainer:
    def __init__(self, model, lr, patience):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.patience = patience
        self.best_loss, self.best_epoch, self.best_model = float("inf"), 0, None

    def epoch(self, x, y):
        self.model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(20):
            loss = F.cross_entropy(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(rows)
        return total / len(x)

    @torch.no_grad()
    def score(self, model, x, y):
        model.eval()
        scores = model(x)
        return F.cross_entropy(scores, y).item(), (scores.argmax(1) == y).float().mean().item()

    def fit(self, train, val, epochs=60):
        for epoch in range(epochs):
            train_loss = self.epoch(*train)
            val_loss, right = self.score(self.model, *val)
            if val_loss < self.best_loss:
                self.best_loss, self.best_epoch = val_loss, epoch
                self.best_model = copy.deepcopy(self.model) if healthy else self.model
            if epoch % 5 == 0:
                print(f"{epoch}: train {train_loss:.3f} val {val_loss:.3f} right {right:.3f}")
            if epoch - self.best_epoch >= self.patience:
                break
        print(f"best epoch {self.best_epoch} with {self.best_loss:.3f}")
        return self.best_model


train, val, test = patients(240), patients(200), patients(1000)
net = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
trainer = Trainer(net, lr=1e-3, patience=20)
best = trainer.fit(train, val)
print("validation of the kept model: loss {:.3f}, right {:.3f}".format(*trainer.score(best, *val)))
print("test of the kept model: loss {:.3f}, right {:.3f}".format(*trainer.score(best, *test)))
