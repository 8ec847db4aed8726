"""Crops from a season of satellite readings; after the sanity check nobody says train() again.

The Trainer sets train mode where it is made. Its `validate` sets eval mode, and it is called once
before the first epoch as a check that it runs, and after every epoch. So the whole training is
done in eval mode: the batch norms of ten layers pass everything on by their first, empty
statistics, and the dropout is off. The place is the loop. The twin calls train() in each epoch.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
DAYS, BANDS, CROPS = 36, 4, 6


def fields(n, g):
    """Green-up and harvest dates by crop; four bands mix greenness, soil and clouds."""
    crop = torch.randint(0, CROPS, (n,), generator=g)
    t = torch.arange(DAYS).float()[None, :]
    rise = torch.tensor([8.0, 8, 12, 12, 10, 15])[crop][:, None]
    rise = rise + 1.1 * torch.randn(n, 1, generator=g)
    fall = torch.tensor([20.0, 24, 24, 28, 31, 28])[crop][:, None]
    fall = fall + 1.1 * torch.randn(n, 1, generator=g)
    green = torch.sigmoid((t - rise) / 1.5) - torch.sigmoid((t - fall) / 1.5)
    soil = 0.3 * torch.randn(n, 1, generator=g).expand(n, DAYS)
    cloud = (torch.rand(n, DAYS, generator=g) < 0.12) * torch.rand(n, DAYS, generator=g)
    parts = torch.stack([green, soil, 2 * cloud], 1)
    mix = torch.tensor([[1.0, 0.2, 1.0], [-0.5, 0.6, 1.0], [0.4, 0.8, 1.0], [0.7, -0.5, 0.9]])
    x = torch.einsum("bk,nkt->nbt", mix, parts)
    return x + 0.2 * torch.randn(n, BANDS, DAYS, generator=g), crop


def conv(c_in, c_out, stride=1):
    return nn.Sequential(
        nn.Conv1d(c_in, c_out, 3, stride=stride, padding=1, bias=False),
        nn.BatchNorm1d(c_out),
        nn.ReLU(),
    )


def build(c=24):
    layers = [conv(BANDS, c)] + [conv(c, c, 2 if i in (3, 6) else 1) for i in range(9)]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(c, CROPS)
    )


class Trainer:
    def __init__(self, model, train_loader, val_loader, epochs, lr=0.05):
        self.model, self.train_loader, self.val_loader = model, train_loader, val_loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)
        self.criterion, self.epochs = nn.CrossEntropyLoss(), epochs
        self.model.train()

    def validate(self):
        self.model.eval()
        hits = n = 0
        with torch.no_grad():
            for x, y in self.val_loader:
                hits += (self.model(x).argmax(1) == y).sum().item()
                n += len(y)
        return hits / n

    def train_epoch(self):
        if healthy:
            self.model.train()
        losses = []
        for x, y in self.train_loader:
            loss = self.criterion(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)

    def fit(self):
        print(f"sanity check: accuracy {self.validate():.3f}")
        for epoch in range(1, self.epochs + 1):
            loss = self.train_epoch()
            self.schedule.step()
            print(f"epoch {epoch}: loss {loss:.3f} validation accuracy {self.validate():.3f}")


g = torch.Generator().manual_seed(seed)
train_loader = DataLoader(TensorDataset(*fields(1440, g)), batch_size=48, shuffle=True)
val_loader = DataLoader(TensorDataset(*fields(480, g)), batch_size=240)
Trainer(build(), train_loader, val_loader, epochs=10).fit()
