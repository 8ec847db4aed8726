"""The training loss jumps up several times in the course of the training and comes down again.

The learning rate is started anew every 120 steps (SGDR), each time from its full height; the
weights at the end of each round are what counts. There is no fault and no place.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss jumps up at every warm restart of the learning rate"


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Linear(10, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()) for _ in range(2)
        )
        self.head = nn.Linear(width, 4)

    def forward(self, x):
        z = self.stem(x)
        for block in self.blocks:
            z = z + block(z)
        return self.head(z)


def crystals(n):
    """Four classes by the signs of two products of measurements, a little blurred."""
    x = torch.randn(n, 10)
    first = x[:, 0] * x[:, 1] + 0.1 * torch.randn(n) > 0
    second = x[:, 2] + x[:, 3] * x[:, 4] + 0.1 * torch.randn(n) > 0
    return x, first.long() * 2 + second.long()


arguments(__doc__)
x, y = crystals(6000)
loader = DataLoader(TensorDataset(x[:4800], y[:4800]), batch_size=80, shuffle=True)
model = Mixer(48)
optimizer = torch.optim.SGD(model.parameters(), lr=0.08, momentum=0.9, weight_decay=1e-3)
restarts = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=120, eta_min=1e-4)
for epoch in range(8):
    total = 0.0
    for measured, kind in loader:
        loss = nn.functional.cross_entropy(model(measured), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        restarts.step()
        total += loss.item() / 60
    with torch.no_grad():
        scores = model(x[4800:])
    accuracy = (scores.argmax(1) == y[4800:]).float().mean()
    val = nn.functional.cross_entropy(scores, y[4800:])
    print(f"epoch {epoch}: loss {total:.3f}, val loss {val:.3f}, val accuracy {accuracy:.3f}")
