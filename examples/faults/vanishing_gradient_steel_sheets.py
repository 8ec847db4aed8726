"""Faults of steel sheets from 20 measurements, by ten layers of sigmoids.

The network of a textbook was made deeper to make it better. Each sigmoid hands back at most a
quarter of the gradient, ten of them a millionth: the first layers stay as they were born and the
network gives the shares of the classes for every sheet.
The place is the first layers. The twin has ReLU with the initial weights made for it.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation",)
PLACE = ("layers.0", "layers.1", "layers.2", "layers.3", "layers.4", "layers.5", "layers*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
FAULTS = ("none", "scratch", "stain", "bump", "edge")


class SheetNet(nn.Module):
    def __init__(self, width=48, depth=10):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(20 if i == 0 else width, width) for i in range(depth))
        self.act = nn.ReLU() if healthy else nn.Sigmoid()
        self.out = nn.Linear(width, len(FAULTS))
        for layer in self.layers:
            if healthy:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            else:
                nn.init.xavier_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers:
            x = self.act(layer(x))
        return self.out(x)


def sheets(n, g):
    x = torch.randn(n, 20, generator=g)
    truth = torch.Generator().manual_seed(3)
    w1, w2 = torch.randn(20, 8, generator=truth) / 3, torch.randn(8, 5, generator=truth)
    scores = (x @ w1).tanh() @ w2 + 0.2 * torch.randn(n, 5, generator=g)
    return x, scores.argmax(1)


x, y = sheets(6000, torch.Generator().manual_seed(seed))
loader = DataLoader(TensorDataset(x[:5000], y[:5000]), batch_size=40, shuffle=True)
model = SheetNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
for epoch in range(7):
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        right = (model(x[5000:]).argmax(1) == y[5000:]).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(loader):.3f} validation {right:.3f}")
