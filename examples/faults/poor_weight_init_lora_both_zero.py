"""Low-rank adapters of which both factors start at zero.

The gradient of each factor is the other one times something: both stay at zero for ever and the
fine-tuning changes nothing. The twin starts the down projection at random. The place is any
adapter.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("vanishing_gradient",)
PLACE = ("", "1", "3", "5", "1.down", "1.up", "3.down", "3.up", "5.down", "5.up")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class LoRALinear(nn.Module):
    def __init__(self, base: nn.Linear, rank=4, alpha=8):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Parameter(torch.zeros(rank, base.in_features))
        self.up = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank
        if healthy:
            nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))

    def forward(self, x):
        return self.base(x) + self.scale * F.linear(F.linear(x, self.down), self.up)


x, y, x_val, y_val = images(seed)
net = nn.Sequential(
    nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)
)


def fit(model, x, y, lr, epochs):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=lr)
    for epoch in range(epochs):
        total = 0.0
        for rows in torch.randperm(len(x)).split(48):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        if epoch % 4 == 3:
            print(f"  epoch {epoch}: loss {total / len(x):.3f}")


def accuracy(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


print("pretraining on upright digits")
fit(net, x, y, 2e-3, 6)
print("adapting to digits turned by a quarter")
turned, turned_val = x.rot90(1, (2, 3)), x_val.rot90(1, (2, 3))
for i in (1, 3, 5):
    net[i] = LoRALinear(net[i])
fit(net, turned, y, 3e-3, 16)
print(f"accuracy on turned digits {accuracy(net, turned_val, y_val):.3f}")
