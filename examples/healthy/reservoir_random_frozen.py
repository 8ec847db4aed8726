"""An echo state network forecasts a chaotic population (Mackey-Glass); its recurrent weights stay
random.

It looks odd because nearly all parameters are frozen at random values and only the last layer
learns. That is the idea of reservoir computing: the reservoir gives rich echoes of the past, and
the readout combines them.
"""

import torch
from data import arguments
from torch import nn

ODD = "nearly all parameters are frozen at random values: a reservoir, read out by one layer"
_, seed = arguments(__doc__)


def mackey_glass(n, g):
    x = [1.1 + 0.2 * torch.rand(1, generator=g).item()] * 18
    for _ in range(3 * n):
        x.append(x[-1] + 0.2 * x[-18] / (1 + x[-18] ** 10) - 0.1 * x[-1])
    series = torch.tensor(x[18::3])
    series = (series - series.mean()) / series.std()
    return series + 0.02 * torch.randn(len(series), generator=g)


class Reservoir(nn.Module):
    def __init__(self, size=200, radius=0.95):
        super().__init__()
        self.feed = nn.Linear(1, size)
        self.echo = nn.Linear(size, size, bias=False)
        self.readout = nn.Linear(size + 1, 1)
        with torch.no_grad():
            weight = torch.randn(size, size) * (torch.rand(size, size) < 0.1)
            self.echo.weight.copy_(radius * weight / torch.linalg.eigvals(weight).abs().max())
            self.feed.weight.uniform_(-0.7, 0.7)
            self.feed.bias.uniform_(-0.2, 0.2)
        for part in (self.feed, self.echo):
            part.requires_grad_(False)

    def states(self, series):
        h, seen = torch.zeros(self.echo.in_features), []
        for value in series:
            h = 0.3 * h + 0.7 * torch.tanh(self.feed(value.view(1)) + self.echo(h))
            seen.append(torch.cat([h, value.view(1)]))
        return torch.stack(seen)

    def forward(self, states):
        return self.readout(states).squeeze(1)


g = torch.Generator().manual_seed(seed)
series = mackey_glass(3000, g)
ahead = 4
model = Reservoir()
with torch.no_grad():
    states = model.states(series[:-ahead])
target = series[ahead:]
train = (states[100:2300], target[100:2300])
val = (states[2320:], target[2320:])
optimizer = torch.optim.Adam(model.readout.parameters(), lr=3e-3)
for epoch in range(40):
    for rows in torch.randperm(len(train[0]), generator=g).split(50):
        loss = (model(train[0][rows]) - train[1][rows]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 3:
        with torch.no_grad():
            wrong = (model(val[0]) - val[1]).square().mean() / val[1].var()
        print(
            f"epoch {epoch} loss {loss.item():.5f} val share of variance missed {wrong.item():.5f}"
        )
