"""A probabilistic forecaster of heat demand.

Odd: the loss is the Gaussian NLL and goes below zero; the encoder is bidirectional (over the past
only, the future is not among its inputs); two linear layers follow each other without an
activation (a low-rank factor of the head); windows are normalised one by one and back; at the end
the model is put to train mode without gradients for a Monte-Carlo-dropout interval. All
deliberate and sound.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "A probabilistic forecaster of heat demand"
_, seed = arguments(__doc__)

PAST, AHEAD = 48, 12


def demand(hours, seed):
    r = np.random.default_rng(seed)
    t = np.arange(hours)
    outside = np.zeros(hours)
    for k in range(1, hours):
        outside[k] = 0.985 * outside[k - 1] + r.normal(0, 0.05)
    daily = np.sin(2 * np.pi * t / 24 + 0.3) + 0.45 * np.sin(4 * np.pi * t / 24)
    y = 3 + daily * (1 + 0.25 * np.tanh(outside)) - outside + 0.08 * r.normal(0, 1, hours)
    return y.astype(np.float32)


class WindowNorm(nn.Module):
    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        std = x.std(1, keepdim=True) + 1e-3
        return (x - mean) / std, mean, std


class Forecaster(nn.Module):
    def __init__(self, hidden=24, rank=10):
        super().__init__()
        self.norm = WindowNorm()
        self.encoder = nn.GRU(1, hidden, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.15)
        self.mix = nn.Sequential(nn.Linear(2 * hidden, 64), nn.GELU())
        self.factor_a = nn.Linear(64, rank, bias=False)
        self.factor_b = nn.Linear(rank, 2 * AHEAD)

    def forward(self, x):
        z, mean, std = self.norm(x)
        _, h = self.encoder(z.unsqueeze(-1))
        h = self.drop(self.mix(torch.cat([h[0], h[1]], 1)))
        mu, log_var = self.factor_b(self.factor_a(h)).chunk(2, 1)
        mu = mu + z[:, -24 : -24 + AHEAD]
        return mu * std + mean, (log_var.clamp(-8, 4).exp() + 1e-4) * std**2


series = demand(24 * 260, seed + 3)
cut = 24 * 210


def cut_windows(s, stride):
    w = np.stack([s[a : a + PAST + AHEAD] for a in range(0, len(s) - PAST - AHEAD, stride)])
    w = torch.from_numpy(w)
    return w[:, :PAST], w[:, PAST:]


train = DataLoader(TensorDataset(*cut_windows(series[:cut], 2)), 64, shuffle=True, drop_last=True)
x_val, y_val = cut_windows(series[cut:], 3)
model = Forecaster()
nll = nn.GaussianNLLLoss()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 4e-3, epochs=7, steps_per_epoch=len(train))
for epoch in range(7):
    model.train()
    losses = []
    for x, y in train:
        loss = nll(*(lambda out: (out[0], y, out[1]))(model(x)))  # noqa: PLC3002
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        sched.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        mu, var = model(x_val)
        val, mae = nll(mu, y_val, var).item(), (mu - y_val).abs().mean().item()
    print(f"epoch {epoch} train nll {np.mean(losses):.4f} val nll {val:.4f} mae {mae:.4f}")

model.train()
with torch.no_grad():
    draws = []
    for _ in range(100):
        mu, var = model(x_val)
        draws.append(mu + var.sqrt() * torch.randn_like(mu))
low, high = torch.stack(draws).quantile(torch.tensor([0.05, 0.95]), dim=0)
print(f"90 % interval covers {((y_val > low) & (y_val < high)).float().mean():.3f}")
