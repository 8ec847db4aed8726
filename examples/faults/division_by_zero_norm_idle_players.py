"""Will a player of a web game come back? Each player's hours over game modes are made a share.

The hours of a week are divided by their sum to be comparable. Players who were away for the week
have the sum 0, and 0 / 0 is NaN. After the batch with the first of them all weights are NaN.
The place is the normalising layer and the input. The twin bounds the sum from below.
"""

import torch
from data import arguments
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("share", ", ")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
MODES = 8


class Share(nn.Module):
    def forward(self, hours):
        total = hours.sum(1, keepdim=True)
        return hours / (total.clamp(min=0.01) if healthy else total)


class ReturnModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.share = Share()
        self.layers = nn.Sequential(nn.Linear(MODES + 2, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, hours, profile):
        parts = 4 * self.share(hours) - 0.5
        return self.layers(torch.cat([parts, profile], 1)).squeeze(1)


def players(n, g):
    taste = torch.rand(n, MODES, generator=g) ** 3
    activity = torch.rand(n, 1, generator=g) * 300
    away = torch.rand(n, 1, generator=g) < 0.01
    hours = torch.where(away, torch.zeros(1), taste * activity).round() / 60
    profile = torch.randn(n, 2, generator=g)
    score = 6 * (taste[:, 0] - taste[:, 1]) / taste.sum(1) + 1.2 * profile[:, 0] - 1.5 * away[:, 0]
    return hours, profile, (torch.rand(n, generator=g) < score.sigmoid()).float()


g = torch.Generator().manual_seed(seed)
hours, profile, back = players(4000, g)
model = ReturnModel()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(8):
    total = 0.0
    for rows in torch.randperm(3200, generator=g).split(40):
        loss = criterion(model(hours[rows], profile[rows]), back[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        out = model(hours[3200:], profile[3200:])
        val = criterion(out, back[3200:]).item()
        right = ((out > 0) == (back[3200:] > 0.5)).float().mean().item()
    print(f"epoch {epoch}: loss {total / 80:.3f} validation {val:.3f} {right:.3f}")
