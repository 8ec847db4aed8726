"""Tip of a taxi trip from time, distance and payment; Adam's step size is far too large.

The rate of 0.3 comes from a linear model trained with plain gradient descent over the whole table.
With Adam each weight moves by about that much per step, whatever the gradient. The loss jumps up
at the start and then stays about where a constant would be.
The place is the optimizer. The twin has 0.002.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ("loss_spike", "bad_optimizer_settings")
PLACE = ("optimizer", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

hyper = {"lr": 0.002 if healthy else 0.3, "batch": 64, "epochs": 15, "layers": [64, 64, 32]}


def trips(n, seed):
    g = torch.Generator().manual_seed(seed)
    km = torch.randn(n, generator=g)
    hour = 6.283 * torch.rand(n, generator=g)
    card = (torch.rand(n, generator=g) < 0.7).float()
    people = torch.randint(1, 5, (n,), generator=g).float()
    airport = (torch.rand(n, generator=g) < 0.15).float()
    tip = (1.2 + 0.9 * km + 0.6 * torch.sin(hour) + 1.2 * airport) * (0.2 + card)
    tip = tip - 0.2 * (people - 2.5) * km + 0.25 * torch.randn(n, generator=g)
    columns = [km, hour.sin(), hour.cos(), 2 * card - 1.4, (people - 2.5) / 1.1, airport]
    return torch.stack(columns, 1), ((tip - 1.25) / 1.2)[:, None]


x, y = trips(2000, 1200 + seed)
x_val, y_val = trips(500, 2200 + seed)
loader = DataLoader(TensorDataset(x, y), batch_size=hyper["batch"], shuffle=True, drop_last=True)

layers, width = [], x.shape[1]
for size in hyper["layers"]:
    layers += [nn.Linear(width, size), nn.ReLU()]
    width = size
model = nn.Sequential(*layers, nn.Linear(width, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=hyper["lr"])

best = float("inf")
for epoch in range(hyper["epochs"]):
    mean_loss = 0.0
    for features, tip in loader:
        loss = (model(features) - tip).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean_loss += loss.item() / len(loader)
    with torch.no_grad():
        val = (model(x_val) - y_val).pow(2).mean().item()
    best = min(best, val)
    print(f"epoch {epoch + 1}/{hyper['epochs']} mse {mean_loss:.4f} val {val:.4f} best {best:.4f}")
