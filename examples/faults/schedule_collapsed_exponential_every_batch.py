"""Price regression in a small Trainer class: ExponentialLR(gamma=0.9) is stepped after each batch.

It was meant for epochs. After one epoch of 47 batches the rate is 0.7 % of its start, after three
it is 1e-7 of it: the error stops far above where it would end, though the gradients are alive. The
place is the optimizer.
"""

import torch
from data import arguments, houses
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr, gamma, per_epoch):
        self.model = model
        self.train_loader, self.val_loader = train_loader, val_loader
        self.criterion = nn.SmoothL1Loss()
        self.optimizer = optim.SGD(model.parameters(), lr=lr, momentum=0.9)
        self.lr_scheduler = optim.lr_scheduler.ExponentialLR(self.optimizer, gamma)
        self.per_epoch = per_epoch

    def train_epoch(self):
        self.model.train()
        total = 0.0
        for features, price in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(features).squeeze(1), price)
            loss.backward()
            self.optimizer.step()
            if not self.per_epoch:
                self.lr_scheduler.step()
            total += loss.item()
        if self.per_epoch:
            self.lr_scheduler.step()
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses = [self.criterion(self.model(f).squeeze(1), p) for f, p in self.val_loader]
        return torch.stack(losses).mean().item()

    def fit(self, epochs):
        for _ in range(epochs):
            train_loss, val_loss = self.train_epoch(), self.validate()
        return train_loss, val_loss


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed)
model = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 1))
trainer = Trainer(
    model,
    DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True),
    DataLoader(TensorDataset(x_val, y_val), batch_size=250),
    lr=0.02,
    gamma=0.9,
    per_epoch=healthy,
)
train_loss, val_loss = trainer.fit(20)
print(f"loss {train_loss:.4f}, validation loss {val_loss:.4f}")
