"""A hand-written ReLU-RNN reads forty hours of wind and forecasts tomorrow's mean power;
backpropagation through time explodes.

The recurrent matrix starts as identity plus noise (IRNN), but with noise 0.1 instead of 0.001,
whose 80x80 matrix makes the spectral radius nearly 2, and there is no clipping. The place is
cell.w_hh.
"""

import math

import torch
from data import arguments, batches
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = ("cell*", "rnn*", "loop")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class IRNNCell(nn.Module):
    def __init__(self, n_in, n_hidden, noise):
        super().__init__()
        self.w_ih = nn.Parameter(torch.randn(n_hidden, n_in) * 0.3 / math.sqrt(n_in))
        self.w_hh = nn.Parameter(torch.eye(n_hidden) + noise * torch.randn(n_hidden, n_hidden))
        self.b = nn.Parameter(torch.zeros(n_hidden))

    def forward(self, x, h):
        return torch.relu(x @ self.w_ih.T + h @ self.w_hh.T + self.b)


class WindForecaster(nn.Module):
    def __init__(self, n_in, n_hidden=80, noise=0.001):
        super().__init__()
        self.n_hidden = n_hidden
        self.cell = IRNNCell(n_in, n_hidden, noise)
        self.head = nn.Linear(n_hidden, 1)
        with torch.no_grad():
            self.head.weight.mul_(0.1)

    def forward(self, x):
        h = x.new_zeros(len(x), self.n_hidden)
        for t in range(x.shape[1]):
            h = self.cell(x[:, t], h)
        return self.head(h).squeeze(1)


def wind(n, hours, g):
    """Wind speed as a slow oscillator driven by noise; tomorrow's power depends on level, trend and phase."""  # noqa: E501
    total = n + hours + 24
    u, v = torch.zeros(total), torch.zeros(total)
    e = torch.randn(total, 2, generator=g)
    for i in range(1, total):
        u[i] = 0.985 * u[i - 1] + 0.08 * v[i - 1] + 0.12 * e[i, 0]
        v[i] = 0.985 * v[i - 1] - 0.08 * u[i - 1] + 0.12 * e[i, 1]
    u, v = u / u.std(), v / v.std()
    power = torch.sigmoid(1.5 * u)
    idx = torch.arange(0, n, 4)[:, None] + torch.arange(hours)
    seen = torch.stack(
        [
            u[idx] + 0.3 * torch.randn(idx.shape, generator=g),
            v[idx] + 0.3 * torch.randn(idx.shape, generator=g),
        ],
        -1,
    )
    future = power[idx[:, -1:] + torch.arange(1, 25)].mean(1)
    return seen, (future - power.mean()) / power.std()


def main():
    g = torch.Generator().manual_seed(2000 + seed)
    x, y = wind(16000, 40, g)
    cut = int(0.8 * len(x))
    x_val, y_val = x[cut + 16 :], y[cut + 16 :]
    model = WindForecaster(2, noise=0.001 if healthy else 0.1)
    opt = torch.optim.Adam(model.parameters(), lr=5e-4)
    history = []
    for step, (xb, yb) in enumerate(batches(x[:cut], y[:cut], size=64, steps=500, seed=seed), 1):
        model.train()
        loss = nn.functional.smooth_l1_loss(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step > 350:
            opt.param_groups[0]["lr"] = 1e-4
        history.append(loss.item())
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                p = model(x_val)
                r2 = 1 - (p - y_val).pow(2).mean() / y_val.var()
            print(
                f"step {step} loss {sum(history[-50:]) / len(history[-50:]):.5g} val r2 {r2.item():.4f}"  # noqa: E501
            )


main()
