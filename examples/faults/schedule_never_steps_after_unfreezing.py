"""Trains a head, then unfreezes the rest with a new optimizer; the schedule drives the old one.

The last layer is fitted on a fixed body first, and then an optimizer over all weights is made. The
cosine schedule belongs to the first optimizer, reports a falling rate each epoch, and the real rate
stays at its start, too rough to settle. The place is the learning rate of the new optimizer.
"""

import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("learning_rate", "optimizer", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

HEAD_EPOCHS, ALL_EPOCHS, RATE = 3, 21, 0.02


def concrete(count):
    """Strength of mixtures of eight ingredients, after laws with products and saturation."""
    x = torch.rand(count, 8)
    ratio = x[:, 3] / (0.3 + x[:, 0] + 0.5 * x[:, 1])
    age = torch.log1p(9 * x[:, 7])
    strength = 3 * age * torch.exp(-ratio) + torch.sin(5 * x[:, 2]) * x[:, 4]
    strength = strength - 2 * (x[:, 5] - 0.5) ** 2 + x[:, 5] * x[:, 6] + 0.35 * torch.randn(count)
    return x, strength.unsqueeze(1)


class StrengthNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU())
        self.head = nn.Linear(48, 1)

    def forward(self, x):
        return self.head(self.body(x))


def make_optimizer(parameters):
    return torch.optim.SGD(parameters, lr=RATE, momentum=0.9)


def train_one_epoch(model, loader, optimizer, criterion):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


@torch.no_grad()
def validate(model, x, y, criterion):
    model.eval()
    return criterion(model(x), y).item()


def main():
    x, y = concrete(3600)
    mean, std = x[:3000].mean(0), x[:3000].std(0)
    x = (x - mean) / std
    y = (y - y[:3000].mean()) / y[:3000].std()
    loader = DataLoader(TensorDataset(x[:3000], y[:3000]), batch_size=8, shuffle=True)

    model = StrengthNet()
    criterion = nn.MSELoss()
    model.body.requires_grad_(False)
    optimizer = make_optimizer(model.head.parameters())
    scheduler = CosineAnnealingLR(optimizer, HEAD_EPOCHS + ALL_EPOCHS)
    for epoch in range(HEAD_EPOCHS + ALL_EPOCHS):
        if epoch == HEAD_EPOCHS:
            model.body.requires_grad_(True)
            optimizer = make_optimizer(model.parameters())
            if healthy:
                scheduler = CosineAnnealingLR(optimizer, ALL_EPOCHS)
        loss = train_one_epoch(model, loader, optimizer, criterion)
        scheduler.step()
        error = validate(model, x[3000:], y[3000:], criterion)
        print(
            f"epoch {epoch:2d}  schedule says {scheduler.get_last_lr()[0]:.4f}  "
            f"train {loss:.4f}  val {error:.4f}",
            flush=True,
        )


main()
