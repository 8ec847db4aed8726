"""A surrogate network of the temperature field of a heated plate; its hidden layers have two units
each.

The student chose hidden layers far too small for a field with several heat sources; the training
loss stays on a plateau far above the noise, on the validation points too. The place is the hidden
layers.
"""

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("hidden*", "net*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
WIDTH = 64 if healthy else 2

g = torch.Generator().manual_seed(130 + seed)
sources = 2 * torch.rand(5, 2, generator=g) - 1
power = torch.tensor([1.0, -0.8, 1.2, 0.9, -1.1])
spread = torch.tensor([0.35, 0.4, 0.3, 0.45, 0.35])


def field(points):
    """Columns: place (u, v) in -1..1 and the time 0..1, scaled to -1..1."""
    place, time = points[:, :2], (points[:, 2:] + 1) / 2
    distance = (place[:, None] - sources).square().sum(-1)
    width = spread**2 + 0.15 * time
    return (
        power * (1 - torch.exp(-4 * time)) * spread**2 / width * torch.exp(-distance / width)
    ).sum(1)


points = 2 * torch.rand(4000, 3, generator=g) - 1
temperature = field(points)
temperature = temperature / temperature.std() - temperature.mean() / temperature.std()
temperature = temperature + 0.05 * torch.randn(len(points), generator=g)
x, x_val = points[:3200] * 1.732, points[3200:] * 1.732
y, y_val = temperature[:3200, None], temperature[3200:, None]


class Surrogate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.hidden1 = nn.Linear(3, width)
        self.hidden2 = nn.Linear(width, width)
        self.hidden3 = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)
        self.act = nn.SiLU()

    def forward(self, x):
        for layer in (self.hidden1, self.hidden2, self.hidden3):
            x = self.act(layer(x))
        return self.out(x)


model = Surrogate(WIDTH)
loss_fn = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
EPOCHS, BATCH = 40, 100
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, 8e-3, epochs=EPOCHS, steps_per_epoch=len(x) // BATCH
)
for epoch in range(EPOCHS):
    running = 0.0
    for rows in torch.randperm(len(x)).split(BATCH):
        loss = loss_fn(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        running += loss.item() * len(rows) / len(x)
    if epoch % 4 == 3:
        with torch.no_grad():
            val = loss_fn(model(x_val), y_val).item()
        print(f"epoch {epoch + 1} train {running:.4f} val {val:.4f}")
