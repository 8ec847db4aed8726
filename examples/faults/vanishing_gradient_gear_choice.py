"""Which of six gears a cyclist should ride in; ten layers of sigmoids let no gradient through.

The network was made deeper because deeper was said to be better, and the sigmoid was kept from the
two-layer exercise it grew out of. Each layer multiplies the gradient by a quarter at best; the
first layers get next to nothing, and all riders look alike to the last.
The place is the first layers of the network.
The twin has ReLU between its layers, with the initialisation that belongs to it.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("layers*",)
SILENT = False
EXACT = False
EARLY = True


class GearNet(nn.Module):
    def __init__(self, depth=10, width=40, activation=torch.sigmoid):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(5 if i == 0 else width, width) for i in range(depth))
        self.activation = activation
        self.out = nn.Linear(width, 6)
        for layer in self.layers:
            if activation is torch.relu:
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            else:
                nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers:
            x = self.activation(layer(x))
        return self.out(x)


def riders(n, seed):
    """Speed, slope, cadence liked, fitness and headwind; the gear that fits, with some whims."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=g)
    speed, slope, cadence, fitness, wind = x.unbind(1)
    effort = speed - 0.9 * slope - 0.5 * cadence + 0.4 * fitness - 0.3 * wind * speed.abs()
    effort = effort + 0.1 * torch.randn(n, generator=g)
    gear = torch.bucketize(effort, torch.tensor([-1.6, -0.7, 0.0, 0.7, 1.5]))
    return x, gear


healthy, seed = arguments(__doc__)
x, gear = riders(3000, seed)
x_val, gear_val = riders(600, seed + 1000)

net = GearNet(activation=torch.relu if healthy else torch.sigmoid)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
average = None
for step, (xb, gb) in enumerate(batches(x, gear, size=64, steps=700, seed=seed), start=1):
    loss = nn.functional.cross_entropy(net(xb), gb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = loss.item() if average is None else 0.95 * average + 0.05 * loss.item()
    if step % 100 == 0:
        with torch.no_grad():
            right = (net(x_val).argmax(1) == gear_val).float().mean().item()
        print(f"{step} steps: loss about {average:.3f}, right gear in {100 * right:.1f} %")
