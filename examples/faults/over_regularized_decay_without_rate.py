"""Decoupled weight decay written by hand, `p *= 1 - decay`, where the rate was to be a factor.

Every step takes 1 % of every weight: they shrink as fast as they learn, and the loss halts far
above what the network can do. The optimizer itself has no decay. The place is the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("loop", "optimizer", "")
SILENT = True
EXACT = False
EARLY = True

WEIGHT_DECAY = 0.01

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class Trainer:
    def __init__(self, model, lr):
        self.model, self.lr = model, lr
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
        self.matrices = [p for p in model.parameters() if p.ndim > 1]

    @torch.no_grad()
    def decay(self):
        for p in self.matrices:
            p.mul_(1 - self.lr * WEIGHT_DECAY if healthy else 1 - WEIGHT_DECAY)

    def training_step(self, rows):
        loss = F.cross_entropy(self.model(x[rows]), y[rows])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.decay()
        return loss.item()

    def validate(self):
        self.model.eval()
        with torch.no_grad():
            out = self.model(x_val)
        self.model.train()
        return F.cross_entropy(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()

    def fit(self, epochs):
        for _ in range(epochs):
            losses = [self.training_step(rows) for rows in torch.randperm(len(x)).split(64)]
            val, accuracy = self.validate()
        return sum(losses) / len(losses), val, accuracy


model = nn.Sequential(nn.Linear(64, 48), nn.ELU(), nn.Linear(48, 32), nn.ELU(), nn.Linear(32, 10))
mean, val, accuracy = Trainer(model, lr=0.02).fit(14)
print(f"loss {mean:.3f}, validation loss {val:.3f}, accuracy {accuracy:.3f}")
