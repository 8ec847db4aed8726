"""A forecaster for electricity meters normalises every window inside the model by the window's own
mean and standard deviation, and undoes it at the end, as RevIN does.

Some meters stand still for a while: a flat window has the standard deviation zero, is divided by
it, and the NaN of that one row reaches all weights through the batch's mean loss. The place is the
window's normalisation.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("revin*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class RevIN(nn.Module):
    def __init__(self):
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        if healthy:
            std = (x.var(1, keepdim=True, unbiased=False) + 1e-3).sqrt()
        else:
            std = x.std(1, keepdim=True, unbiased=False)
        return (x - mean) / std * self.gain + self.shift, (mean, std)

    def undo(self, y, stats):
        mean, std = stats
        return (y - self.shift) / self.gain * std + mean


class Forecaster(nn.Module):
    def __init__(self, past=48, future=12, width=64):
        super().__init__()
        self.revin = RevIN()
        self.trend = nn.Linear(past, future)
        self.detail = nn.Sequential(nn.Linear(past, width), nn.GELU(), nn.Linear(width, future))

    def forward(self, x):
        h, stats = self.revin(x)
        return self.revin.undo(self.trend(h) + self.detail(h), stats)


def meters(g, count=60, days=16):
    t = torch.arange(24 * days).float()
    level = 1 + torch.rand(count, 1, generator=g)
    phase = torch.rand(count, 1, generator=g) * 6.28
    s = level * (2 + (t * 6.283 / 24 + phase).sin() + 0.4 * (t * 6.283 / 12).cos())
    s = s + 0.1 * torch.randn(s.shape, generator=g)
    for i in range(0, count, 7):
        a = int(torch.randint(0, 24 * (days - 4), (1,), generator=g))
        s[i, a : a + 84] = s[i, a].clone()
    return s


s = meters(torch.Generator().manual_seed(21 + seed))
w = s.unfold(1, 60, 12)
train, held = w[:48].flatten(0, 1), w[48:].flatten(0, 1)
loader = DataLoader(TensorDataset(train[:, :48], train[:, 48:]), batch_size=64, shuffle=True)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(14):
    model.train()
    total = 0.0
    for past, future in loader:
        loss = F.l1_loss(model(past), future)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    model.eval()
    with torch.no_grad():
        val = F.l1_loss(model(held[:, :48]), held[:, 48:])
    print(f"epoch {epoch}: train {total:.4f} val {val.item():.4f}")
