"""A coordinate network with Fourier features interpolates a temperature field; its cosine schedule
is there but never takes a step.

The schedule is meant to step once an epoch, and the user tells the epoch's end by the number of
samples instead of the number of batches; that many iterations never come. The rate stays at its
peak. The place is the loop.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def field(p):
    """Temperature anomaly at (lon, lat) in [-1, 1]^2: waves, a front and a warm spot."""
    lon, lat = p[:, :1], p[:, 1:]
    waves = 0.6 * torch.sin(5 * lon + 2 * lat) + 0.4 * torch.cos(7 * lat - 3 * lon * lat)
    front = torch.tanh(6 * (lat - 0.4 * torch.sin(3 * lon)))
    spot = 1.2 * torch.exp(-((lon - 0.3) ** 2 + (lat + 0.5) ** 2) / 0.05)
    return waves + 0.7 * front + spot


class Fourier(nn.Module):
    def __init__(self, n, scale):
        super().__init__()
        self.register_buffer("freq", torch.randn(2, n) * scale)

    def forward(self, p):
        a = 2 * math.pi * p @ self.freq
        return torch.cat([a.sin(), a.cos()], 1)


class FieldNet(nn.Module):
    def __init__(self, n=48, d=96):
        super().__init__()
        self.enc = Fourier(n, 0.6)
        self.body = nn.Sequential(
            nn.Linear(2 * n, d), nn.GELU(), nn.Linear(d, d), nn.GELU(), nn.Linear(d, d), nn.GELU()
        )
        self.out = nn.Linear(d, 1)

    def forward(self, p):
        return self.out(self.body(self.enc(p)))


def main():
    n_train, batch, epochs, peak = 6000, 100, 40, 8e-3
    stations = torch.rand(n_train, 2) * 2 - 1
    reading = field(stations) + 0.02 * torch.randn(n_train, 1)
    probe = torch.rand(2000, 2) * 2 - 1
    truth = field(probe)

    net = FieldNet()
    opt = torch.optim.Adam(net.parameters(), lr=peak, betas=(0.9, 0.99))
    sched = CosineAnnealingLR(opt, T_max=epochs, eta_min=1e-5)
    steps_per_epoch = n_train // batch if healthy else n_train
    step, running, best = 0, None, float("inf")
    for epoch in range(epochs):
        net.train()
        order = torch.randperm(n_train)
        for b in range(n_train // batch):
            rows = order[b * batch : (b + 1) * batch]
            loss = nn.functional.mse_loss(net(stations[rows]), reading[rows])
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            step += 1
            running = loss.item() if running is None else 0.98 * running + 0.02 * loss.item()
            if step % steps_per_epoch == 0:
                sched.step()
        if epoch % 4 == 3:
            net.eval()
            with torch.no_grad():
                rmse = (net(probe) - truth).pow(2).mean().sqrt().item()
            best = min(best, rmse)
            print(f"epoch {epoch + 1:3d} step {step} loss {running:.5f} val rmse {rmse:.4f}")
    print(f"final val rmse {rmse:.4f} (best {best:.4f})")


main()
