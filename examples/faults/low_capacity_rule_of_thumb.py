"""The field of three magnets is learned with as many hidden units as a rule of thumb says: 2/3 of
the inputs + outputs.

That makes 2 for two coordinates and one value. Two tanh units bend along two lines, and that is
all. The place is the hidden layer. The loss falls a little all the same (silent), then stays high
on the training points, too. Not exact.
"""

import torch
from data import arguments
from torch import nn

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("hidden*", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def potential(points):
    places = torch.tensor([[0.6, 0.4], [-0.5, 0.5], [0.0, -0.6]])
    strength = torch.tensor([1.0, -1.2, 0.8])
    square = ((points[:, None] - places[None]) ** 2).sum(-1)
    return (strength * torch.exp(-square / 0.12)).sum(1, keepdim=True) / 0.35


def units(inputs, outputs):
    return 64 if healthy else round(2 / 3 * inputs + outputs)


class FieldNet(nn.Module):
    def __init__(self, inputs=2, outputs=1):
        super().__init__()
        width = units(inputs, outputs)
        self.hidden = nn.Sequential(
            nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.out = nn.Linear(width, outputs)

    def forward(self, points):
        return self.out(self.hidden(points))


g = torch.Generator().manual_seed(seed)
points = torch.rand(2000, 2, generator=g) * 2 - 1
values = potential(points) + 0.03 * torch.randn(2000, 1, generator=g)
test_points = torch.rand(500, 2, generator=g) * 2 - 1
test_values = potential(test_points)

net = FieldNet()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=300, gamma=0.3)
for iteration in range(800):
    rows = torch.randint(0, len(points), (100,), generator=g)
    optimizer.zero_grad()
    loss = ((net(points[rows]) - values[rows]) ** 2).mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if iteration % 200 == 199:
        net.eval()
        with torch.no_grad():
            left = ((net(test_points) - test_values) ** 2).mean() / test_values.var()
        net.train()
        print(f"{iteration + 1}: loss {loss.item():.4f}, test error {left:.4f} of the variance")
