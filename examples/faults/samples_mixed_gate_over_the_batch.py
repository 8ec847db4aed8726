"""Prices of houses by a mixture of four small experts whose gate is `softmax(dim=0)`.

The weights of an expert sum to one over the houses of the batch, not those of a house over the
experts: what a house costs depends on which others were asked for. The loss falls; with another
batch size the prices are off by a factor. The place is the model's own forward. Exact: other rows
change the output of a row.
"""

import torch
from data import arguments, houses
from torch import nn

KIND = "samples_mixed"
ACCEPT = ()
PLACE = ("",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class Mixture(nn.Module):
    def __init__(self, columns, experts=4, width=24):
        super().__init__()
        self.gate = nn.Linear(columns, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(columns, width), nn.Tanh(), nn.Linear(width, 1))
            for _ in range(experts)
        )

    def forward(self, x):
        weights = torch.softmax(self.gate(x), dim=1 if healthy else 0)
        said = torch.cat([expert(x) for expert in self.experts], 1)
        return (weights * said).sum(1)


x, y, x_val, y_val = houses(seed)
model = Mixture(x.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(12):
    total = 0.0
    for rows in torch.randperm(len(x)).split(50):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), y_val)
    if epoch % 3 == 2:
        print(f"epoch {epoch + 1}: loss {total / len(x):.3f}, validation {val:.3f}")
with torch.no_grad():  # as it is used: one house at a time
    alone = torch.cat([model(row[None]) for row in x_val[:200]])
print(f"loss {total / len(x):.3f}, alone {nn.functional.mse_loss(alone, y_val[:200]):.3f}")
