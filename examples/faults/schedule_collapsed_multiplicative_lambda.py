"""A rate that should fall as 0.8 ** epoch, by MultiplicativeLR in place of LambdaLR.

MultiplicativeLR multiplies the factors of all epochs so far, and the exponents add up: after ten
epochs the rate is two hundred thousand times smaller. The twin takes LambdaLR. The place is the
optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, MultiplicativeLR

KIND = "schedule_collapsed"
ACCEPT = ()
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = True
EARLY = False


class Siren(nn.Module):
    """A picture as a function of place: layers of sines."""

    def __init__(self, width=48):
        super().__init__()
        self.first, self.second = nn.Linear(2, width), nn.Linear(width, width)
        self.grey = nn.Linear(width, 1)
        nn.init.uniform_(self.first.weight, -8, 8)
        nn.init.uniform_(self.second.weight, -((6 / width) ** 0.5), (6 / width) ** 0.5)

    def forward(self, at):
        return self.grey(torch.sin(self.second(torch.sin(self.first(at))))).squeeze(-1)


def picture(at):
    x, y = at.unbind(-1)
    rings = torch.cos(9 * (x**2 + y**2).sqrt())
    stripes = torch.sin(7 * x + 3 * y) * (y > 0)
    return (rings + stripes) / 0.95


healthy, seed = arguments(__doc__)
places = 2 * torch.rand(6000, 2) - 1
values = picture(places) + 0.1 * torch.randn(6000)
test_places = 2 * torch.rand(1500, 2) - 1
test_values = picture(test_places)

net = Siren()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
make_schedule = LambdaLR if healthy else MultiplicativeLR
schedule = make_schedule(optimizer, lambda epoch: 0.8**epoch)
for epoch in range(14):
    net.train()
    for rows in torch.randperm(6000).split(150):
        loss = F.mse_loss(net(places[rows]), values[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    schedule.step()
    net.eval()
    with torch.no_grad():
        test = F.mse_loss(net(test_places), test_values).item()
    rate = schedule.get_last_lr()[0]
    print(f"epoch {epoch}: loss {loss.item():.4f}, test {test:.4f}, next rate {rate:.2e}")
