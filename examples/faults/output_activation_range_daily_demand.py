"""Forecasts tomorrow's demand for goods; the output cannot go below zero, the targets do.

Demand is never negative, so a ReLU was put behind the last layer. But the targets are standardised,
and half of them lie below zero: the quiet days all get the same forecast.
The place is the output of the head.
The twin leaves the output as it is.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "output_activation_range"
ACCEPT = ("dead_relu",)
PLACE = ("output*", "head", "head.2", "head.3")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Demand(Dataset):
    """The last 14 days of an article, the weekday and whether there is a promotion."""

    def __init__(self, articles, days, generator):
        t = torch.arange(days)
        level = 2 + torch.rand(articles, 1, generator=generator)
        week = torch.tensor([0.0, -0.2, -0.1, 0.1, 0.5, 0.8, -0.9])[t % 7]
        strength = 0.5 + torch.rand(articles, 1, generator=generator)
        self.promotion = (torch.rand(articles, days, generator=generator) < 0.15).float()
        drift = torch.randn(articles, days, generator=generator).cumsum(1) * 0.05
        log = level + strength * week + 0.7 * self.promotion + drift
        log = log + 0.15 * torch.randn(articles, days, generator=generator)
        self.series = (log - log.mean(1, keepdim=True)) / log.std(1, keepdim=True)
        self.per = days - 14

    def __len__(self):
        return len(self.series) * self.per

    def __getitem__(self, i):
        article, day = divmod(i, self.per)
        past = torch.stack(
            [self.series[article, day : day + 14], self.promotion[article, day : day + 14]]
        )
        weekday = nn.functional.one_hot(torch.tensor((day + 14) % 7), 7).float()
        known = torch.cat([weekday, self.promotion[article, day + 14, None]])
        return past, known, self.series[article, day + 14]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(2, 16, 3, padding=1), nn.GELU(), nn.Conv1d(16, 16, 3, padding=1), nn.GELU()
        )
        layers = [nn.Linear(16 * 14 + 8, 48), nn.GELU(), nn.Linear(48, 1)]
        self.head = nn.Sequential(*layers) if healthy else nn.Sequential(*layers, nn.ReLU())

    def forward(self, past, known):
        return self.head(torch.cat([self.conv(past).flatten(1), known], 1)).squeeze(1)


g = torch.Generator().manual_seed(seed)
train = DataLoader(Demand(30, 120, g), batch_size=64, shuffle=True)
val = DataLoader(Demand(10, 100, g), batch_size=500)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(7):
    total = 0.0
    for past, known, target in train:
        loss = nn.functional.mse_loss(model(past, known), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        errors = [(model(past, known) - target) ** 2 for past, known, target in val]
    print(f"epoch {epoch}: loss {total / len(train):.4f}, val {torch.cat(errors).mean():.4f}")
