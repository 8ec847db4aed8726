"""Predicting taxi fares: the learning rate's schedule is stepped at each batch, not each epoch.

`ExponentialLR(gamma=0.85)` was meant per epoch. The call slipped into the inner loop with the
indentation; after a hundred batches, not yet two epochs, the rate is ten million times smaller and
nothing moves any more. The place is the schedule.
The twin steps at the end of the epoch.
"""

import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import ExponentialLR

KIND = "schedule_collapsed"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = False


class FareNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.zone = nn.Embedding(20, 4)
        self.layers = nn.Sequential(
            nn.Linear(4 * 2 + 2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU(), nn.Linear(48, 1)
        )

    def forward(self, zones, numbers):
        z = self.zone(zones).flatten(1)
        return self.layers(torch.cat([z, numbers], 1)).squeeze(1)


def rides(n, g):
    place = 10 * torch.rand(20, 2, generator=torch.Generator().manual_seed(4))
    zones = torch.randint(0, 20, (n, 2), generator=g)
    far = (place[zones[:, 0]] - place[zones[:, 1]]).norm(dim=1)
    hour = 24 * torch.rand(n, generator=g)
    night = ((hour < 6) | (hour > 22)).float()
    jam = torch.exp(-((hour - 17) ** 2) / 4)
    fare = 3 + far * (1.8 + 0.5 * night) + 3 * jam + 0.5 * torch.randn(n, generator=g)
    numbers = torch.stack([torch.sin(hour / 3.82), torch.cos(hour / 3.82)], 1)
    return zones, numbers, (fare - 12) / 6


def train_epoch(model, data, opt, per_batch=None):
    zones, numbers, fare = data
    total = 0.0
    for idx in torch.randperm(len(fare)).split(50):
        opt.zero_grad()
        loss = nn.functional.l1_loss(model(zones[idx], numbers[idx]), fare[idx])
        loss.backward()
        opt.step()
        if per_batch is not None:
            per_batch.step()
        total += loss.item() * len(idx)
    return total / len(fare)


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
data, test = rides(3000, g), rides(600, g)
model = FareNet()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = ExponentialLR(opt, gamma=0.85)
for epoch in range(12):
    if healthy:
        loss = train_epoch(model, data, opt)
        schedule.step()
    else:
        loss = train_epoch(model, data, opt, schedule)
    if epoch % 3 == 2:
        with torch.no_grad():
            off = 6 * (model(*test[:2]) - test[2]).abs().mean()
        print(f"epoch {epoch + 1}: train {loss:.4f}; test fares off by {off:.2f} dollars")
