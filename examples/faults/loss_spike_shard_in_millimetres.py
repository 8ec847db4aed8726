"""A regression that streams its data shard by shard meets one shard written in millimetres instead
of metres.

The eighth of twelve shards has lengths a thousand times too large. The loss had come down well,
leaps up by orders of magnitude when that shard begins and the weights are thrown off; the rest of
the run has to learn again. The twin reads that shard with the right unit. The place is the loss,
the input, the loop or the loader.
"""

import torch
from data import arguments
from torch import nn

KIND = "loss_spike"
ACCEPT = ("input_not_normalized",)
PLACE = ("loss*", "input*", "loop", "loader")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
SHARDS, ROWS, BATCH = 12, 1600, 32
WRONG = 7


def read_shard(number):
    """Rods: length, width (metres, standardised by known figures), 3 material numbers; bending."""
    g = torch.Generator().manual_seed(1000 * seed + number)
    size = torch.rand(ROWS, 2, generator=g) + 0.5
    material = torch.randn(ROWS, 3, generator=g)
    bending = (
        size[:, 0] ** 2 / size[:, 1] + 0.4 * material[:, 0] + 0.3 * material[:, 1] * material[:, 2]
    )
    bending = bending + 0.05 * torch.randn(ROWS, generator=g)
    if number == WRONG and not healthy:
        size = size * 1000
    return torch.cat([(size - 1.0) / 0.289, material], 1), (bending - 1.19) / 0.96


class Bending(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(5, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.out = nn.Linear(64, 1)

    def forward(self, x):
        return self.out(self.inner(x)).squeeze(1)


x_val, y_val = read_shard(99)
model = Bending()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.MSELoss()
for shard in range(SHARDS):
    x, y = read_shard(shard)
    model.train()
    total, worst = 0.0, 0.0
    for rows in torch.randperm(ROWS).split(BATCH):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
        worst = max(worst, loss.item())
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val), y_val).item()
    print(
        f"shard {shard + 1:2d}: train {total / (ROWS // BATCH):.4g} (worst {worst:.4g}) "
        f"val {val:.4f}"
    )
