"""The pressure after a pump is forecast by an echo state network.

Looks odd: most of the weights are random, never trained and in no optimizer, the states are made
without gradient and are partly saturated, and a linear layer is all that learns. It is sound,
since that is what a reservoir is; the readout is trained to convergence and beats persistence by
far.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "The pressure after a pump is forecast by an echo state network"

_, seed = arguments(__doc__)

AHEAD, WASHOUT = 5, 100


def pump(n):
    """Mackey-Glass-like pressure with a valve that is switched now and then."""
    rng = np.random.default_rng(seed)
    p, valve = np.full(n, 1.2), np.ones(n)
    for t in range(18, n):
        valve[t] = rng.choice([0.9, 1.0, 1.1]) if rng.random() < 0.01 else valve[t - 1]
        p[t] = p[t - 1] + 0.2 * p[t - 17] / (1 + p[t - 17] ** 10) * valve[t] - 0.1 * p[t - 1]
    return np.stack([p + 0.005 * rng.normal(size=n), valve - 1], 1)


class Reservoir(nn.Module):
    """Leaky tanh units with sparse random couplings; nothing here is learnt."""

    def __init__(self, inputs, units=200, radius=0.9, leak=0.4):
        super().__init__()
        w = torch.randn(units, units) * (torch.rand(units, units) < 0.06)
        w = w * (radius / torch.linalg.eigvals(w).abs().max())
        self.w = nn.Parameter(w, requires_grad=False)
        self.w_in = nn.Parameter((torch.rand(units, inputs) * 2 - 1) * 0.8, requires_grad=False)
        self.bias = nn.Parameter(torch.randn(units) * 0.4, requires_grad=False)
        self.leak = leak

    @torch.no_grad()
    def forward(self, u):
        h, states = torch.zeros(self.w.shape[0]), []
        for row in u:
            h = (1 - self.leak) * h + self.leak * torch.tanh(
                self.w @ h + self.w_in @ row + self.bias
            )
            states.append(h)
        return torch.stack(states)


class ESN(nn.Module):
    def __init__(self):
        super().__init__()
        self.reservoir = Reservoir(2)
        self.readout = nn.Linear(202, 1)

    def states(self, u):
        return torch.cat([self.reservoir(u), u], 1)

    def forward(self, s):
        return self.readout(s).squeeze(1)


series = torch.tensor(pump(4000), dtype=torch.float32)
mean, std = series[:3000].mean(0), series[:3000].std(0)
series = (series - mean) / std
model = ESN()
states = model.states(series)
x, y = states[WASHOUT:-AHEAD], series[WASHOUT + AHEAD :, 0]
cut = 3000 - WASHOUT
loader = DataLoader(TensorDataset(x[: cut - AHEAD], y[: cut - AHEAD]), batch_size=100, shuffle=True)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
epochs = 75
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
for epoch in range(1, epochs + 1):
    total = 0.0
    for s, target in loader:
        loss = (model(s) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    scheduler.step()
    if epoch % 15 == 0:
        with torch.no_grad():
            val = (model(x[cut:]) - y[cut:]).square().mean().item()
        persist = (x[cut:, 200] - y[cut:]).square().mean().item()
        print(f"epoch {epoch}: train {total:.4f} val {val:.4f} (persistence {persist:.4f})")
