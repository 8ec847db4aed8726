"""An echo state network forecasts a chaotic series: a random recurrent reservoir that is never
trained, and a trained readout.

Looks odd: 99 % of the parameters are random and frozen, the recurrent part runs under no_grad,
and only the last layer gets gradients. It's sound: that is what reservoir computing is; the
spectral radius is set to 0.9, the states are standardised, and the readout reaches an error far
below persistence.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

ODD = "99 % of the parameters are random and frozen, and the recurrence runs under no_grad"
_, seed = arguments(__doc__)


def mackey_glass(n: int, rng: np.random.Generator, tau: int = 17, warm: int = 500) -> np.ndarray:
    x = list(1.2 + 0.1 * rng.normal(size=tau + 1))
    for _ in range(n + warm):
        x.append(x[-1] + 0.2 * x[-tau - 1] / (1 + x[-tau - 1] ** 10) - 0.1 * x[-1])
    return np.array(x[-n:]) + 0.01 * rng.normal(size=n)


class Reservoir(nn.Module):
    def __init__(self, size: int, radius: float, leak: float):
        super().__init__()
        w = torch.randn(size, size) * (torch.rand(size, size) < 0.05)
        w *= radius / torch.linalg.eigvals(w).abs().max()
        self.recurrent = nn.Parameter(w, requires_grad=False)
        self.inputs = nn.Parameter(torch.empty(size, 1).uniform_(-0.8, 0.8), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(size).uniform_(-0.2, 0.2), requires_grad=False)
        self.leak = leak

    @torch.no_grad()
    def forward(self, series: torch.Tensor) -> torch.Tensor:
        h, states = torch.zeros(len(self.bias)), []
        for value in series:
            h = (1 - self.leak) * h + self.leak * torch.tanh(
                self.recurrent @ h + self.inputs[:, 0] * value + self.bias
            )
            states.append(h)
        return torch.stack(states)


class EchoStateNetwork(nn.Module):
    def __init__(self, size: int = 400):
        super().__init__()
        self.reservoir = Reservoir(size, 0.9, 0.6)
        self.readout = nn.Linear(size, 1)


HORIZON, WASHOUT, CUT = 6, 200, 4200
series = mackey_glass(5600, np.random.default_rng(seed))
mean, std = series[:CUT].mean(), series[:CUT].std()
series = torch.tensor((series - mean) / std, dtype=torch.float32)

esn = EchoStateNetwork()
states = esn.reservoir(series[:-HORIZON])
target = series[HORIZON:]
train = slice(WASHOUT, CUT - HORIZON)
valid = slice(CUT, len(target))
s_mean, s_std = states[train].mean(0), states[train].std(0)
states = (states - s_mean) / s_std
trained = [p for p in esn.parameters() if p.requires_grad]
total = sum(p.numel() for p in esn.parameters())
print(f"{sum(p.numel() for p in trained)} of {total} parameters are trained")

optimizer = torch.optim.AdamW(trained, lr=3e-3, weight_decay=1e-2)
EPOCHS, BATCH = 30, 64
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
x, y = states[train], target[train]
naive = ((series[CUT : len(target)] - target[valid]) ** 2).mean().sqrt().item()
for epoch in range(EPOCHS):
    esn.train()
    for rows in torch.randperm(len(y)).split(BATCH):
        loss = nn.functional.mse_loss(esn.readout(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    scheduler.step()
    esn.eval()
    with torch.no_grad():
        rmse = (esn.readout(states[valid]).squeeze(1) - target[valid]).pow(2).mean().sqrt().item()
    if epoch % 3 == 2:
        print(
            f"epoch {epoch} train mse {loss.item():.5f} val NRMSE {rmse:.4f} (persistence {naive:.4f})"  # noqa: E501
        )
