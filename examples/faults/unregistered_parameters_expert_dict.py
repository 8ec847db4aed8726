"""A mixture of experts predicts the strength of concrete-like mixes of several makers; each expert
is a small network, and they are kept in a plain dictionary by name.

Module does not look into a dict, so the experts' weights are not among the parameters and are never
updated: only the gate and the layer in front of them learn. The loss falls a good deal and stops
high. The place is the experts.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ()
PLACE = ("experts*", "optimizer", "mixture*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
NAMES = ("cement", "slag", "ash", "lime")


def expert(width):
    return nn.Sequential(nn.Linear(width, 32), nn.SiLU(), nn.Linear(32, 1))


class Mixture(nn.Module):
    def __init__(self, features, width=32):
        super().__init__()
        self.front = nn.Sequential(nn.Linear(features, width), nn.LayerNorm(width), nn.SiLU())
        experts = {name: expert(width) for name in NAMES}
        self.experts = nn.ModuleDict(experts) if healthy else experts
        self.gate = nn.Linear(features, len(NAMES))

    def forward(self, x):
        h = self.front(x)
        said = torch.cat([net(h) for net in self.experts.values()], 1)
        return (torch.softmax(self.gate(x), 1) * said).sum(1)


def mixes(n, g):
    """Eight quantities; which of four laws holds is decided by the first two."""
    x = torch.randn(n, 8, generator=g)
    a, b = x[:, 0] > 0, x[:, 1] > 0
    laws = torch.stack(
        [x[:, 2] + x[:, 3], (1.5 * x[:, 4]).sin() + x[:, 2], 1.0 - x[:, 3], x[:, 5].abs() - x[:, 6]]
    )
    y = laws[a.long() * 2 + b.long(), torch.arange(n)] + 2.0 * (a ^ b)
    return x, y + 0.15 * torch.randn(n, generator=g)


g = torch.Generator().manual_seed(seed)
x, y = mixes(4000, g)
x_val, y_val = mixes(800, g)
mean, std = y.mean(), y.std()
y, y_val = (y - mean) / std, (y_val - mean) / std
model = Mixture(8)
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1000)
recent = []
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=1000, seed=seed), 1):
    loss = nn.functional.mse_loss(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    recent.append(loss.item())
    if step % 100 == 0:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(
            f"step {step} train {sum(recent[-100:]) / 100:.4f} val {val:.4f}"
            f" R2 {1 - val / y_val.var().item():.3f}"
        )
