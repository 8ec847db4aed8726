"""Echo-state network for a wind turbine's power: the reservoir is random and frozen, only the
readout learns.

Echo-state networks are built like that: a sparse random recurrence with a spectral radius below one
gives a rich memory of the wind, and training concerns the linear readout alone. Nearly all
parameters never change.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "98 % of the parameters are random, frozen and not in the optimizer: an echo-state network"

_, seed = arguments(__doc__)
WARM_UP = 60


def turbine(hours, g):
    """Gusty wind; the rotor follows it with inertia and the power saturates."""
    wind, rotor = torch.zeros(hours), torch.zeros(hours)
    gusts = torch.randn(hours, generator=g)
    for t in range(1, hours):
        wind[t] = 0.9 * wind[t - 1] + 0.4 * gusts[t]
        rotor[t] = 0.8 * rotor[t - 1] + 0.2 * wind[t - 1] * abs(float(wind[t - 3])) ** 0.5
    power = torch.tanh(1.5 * rotor) + 0.3 * rotor.roll(4) * (wind > 0)
    power = power + 0.05 * torch.randn(hours, generator=g)
    return wind, (power - power.mean()) / power.std()


class Reservoir(nn.Module):
    def __init__(self, units=200, radius=0.85, leak=0.5):
        super().__init__()
        recurrent = torch.randn(units, units) * (torch.rand(units, units) < 0.1)
        recurrent *= radius / torch.linalg.eigvals(recurrent).abs().max()
        self.recurrent = nn.Parameter(recurrent, requires_grad=False)
        self.into = nn.Parameter(torch.rand(units, 2) - 0.5, requires_grad=False)
        self.leak = leak
        self.readout = nn.Linear(units + 1, 1)

    @torch.no_grad()
    def states(self, wind):
        """The whole record once; nothing in it is trained."""
        h, told = torch.zeros(len(self.recurrent)), []
        for now in wind:
            drive = self.into @ torch.stack([now, torch.ones_like(now)])
            h = (1 - self.leak) * h + self.leak * torch.tanh(self.recurrent @ h + drive)
            told.append(torch.cat([h, now[None]]))
        return torch.stack(told)

    def forward(self, states):
        return self.readout(states).squeeze(-1)


g = torch.Generator().manual_seed(seed)
wind, power = turbine(5000, g)
model = Reservoir()
states = model.states(wind)
cut = 4000
mean, std = states[WARM_UP:cut].mean(0), states[WARM_UP:cut].std(0)
states = (states - mean) / std
loader = DataLoader(TensorDataset(states[WARM_UP:cut], power[WARM_UP:cut]), 64, shuffle=True)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
for epoch in range(12):
    model.train()
    total = 0.0
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    schedule.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(states[cut:]), power[cut:])
    print(
        f"epoch {epoch} loss {total:.4f} val loss {val:.4f} "
        f"validation R2 {1 - val / power[cut:].var():.4f}"
    )
