"""A gated recurrent net predicts a house's heating load from the last day, in kilowatts, learning
from files as they come in, week after week. One file holds watts instead of kilowatts.

That one step's loss is a million times the usual. Adam goes astray for some dozen steps and then,
as its second moments remember the blow, comes back only slowly. The place is the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "loss_spike"
ACCEPT = ()
PLACE = ("loss", "input", "loader", "optimizer")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class Load(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.gru = nn.GRU(3, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, 32), nn.GELU(), nn.Linear(32, 1))

    def forward(self, x):
        h, _ = self.gru(x)
        return self.head(h[:, -1]).squeeze(1)


def file(number, g, n=48):
    """Standardised weather of a day (cold, wind, sun) and the load of the hour after it."""
    start = torch.rand(n, 1, generator=g) * 24
    hour = (start + torch.arange(24)) * 6.283 / 24
    cold = (
        1.2 * torch.randn(n, 1, generator=g)
        + 0.5 * hour.cos()
        + 0.2 * torch.randn(n, 24, generator=g)
    )
    wind = torch.randn(n, 24, generator=g)
    sun = -hour.cos() + 0.2 * torch.randn(n, 24, generator=g)
    load = (
        2
        + 0.8 * cold[:, -8:].mean(1)
        + 0.3 * F.relu(cold[:, -1]) * wind[:, -1]
        - 0.5 * F.relu(sun[:, -3:]).mean(1)
    )
    load = load + 0.1 * torch.randn(n, generator=g)
    if number == 90 and not healthy:
        load = 1000 * load
    return torch.stack([cold, wind, sun], -1), load


g = torch.Generator().manual_seed(70 + seed)
held = [file(-1, g) for _ in range(8)]
x_val, y_val = torch.cat([x for x, _ in held]), torch.cat([y for _, y in held])
model = Load()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for number in range(400):
    x, y = file(number, g)
    loss = F.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 25 == 24:
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(x_val), y_val)
        model.train()
        print(f"file {number + 1}: loss {loss.item():.4f} val {val.item():.4f}")
