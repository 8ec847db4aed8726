"""A denoiser for gravitational-wave-like strain; the two betas of Adam are in the wrong order.

The configuration names them b1 and b2, and they are handed over as (b2, b1): the momentum
remembers a thousand steps, the second moment only ten. The place is the optimizer.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class OptimConfig:
    lr: float = 2e-3
    b1: float = 0.9
    b2: float = 0.999
    eps: float = 1e-8


@dataclass
class TrainConfig:
    steps: int = 450
    batch: int = 24
    length: int = 160
    eval_every: int = 75
    optim: OptimConfig = None


def chirps(n, length):
    """Inspirals: the pitch and the amplitude rise until the merger, then it rings down."""
    t = torch.linspace(0, 1, length).expand(n, -1)
    tc = 0.55 + 0.35 * torch.rand(n, 1)
    tau = (tc - t).clamp(min=0.01)
    phase = (30 + 30 * torch.rand(n, 1)) * tau ** (5 / 8) * 1.8 + 6.28 * torch.rand(n, 1)
    h = (
        tau.pow(-0.25)
        * torch.cos(phase)
        * torch.where(t < tc, 1.0, torch.exp(-(t - tc) * 40))
        * 0.6
    )
    glitch = (torch.rand(n, 1) < 0.3) * 2.0 * torch.exp(-(((t - torch.rand(n, 1)) / 0.012) ** 2))
    white = torch.randn(n, length + 8)
    noise = white[:, 4:-4] + 0.5 * white[:, 3:-5] + 0.3 * white[:, 2:-6]
    line = 0.4 * torch.sin(6.28 * 60 * t + 6.28 * torch.rand(n, 1))
    return (h + glitch + 0.6 * noise + line).unsqueeze(1), h.unsqueeze(1)


class GatedBlock(nn.Module):
    """WaveNet's, not causal."""

    def __init__(self, width, dilation):
        super().__init__()
        self.conv = nn.Conv1d(width, 2 * width, 3, padding=dilation, dilation=dilation)
        self.res = nn.Conv1d(width, width, 1)
        self.skip = nn.Conv1d(width, width, 1)

    def forward(self, x):
        a, b = self.conv(x).chunk(2, 1)
        z = a.tanh() * b.sigmoid()
        return x + self.res(z), self.skip(z)


class Denoiser(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.first = nn.Conv1d(1, width, 7, padding=3)
        self.blocks = nn.ModuleList(GatedBlock(width, 2**i) for i in range(5))
        self.last = nn.Sequential(
            nn.ReLU(), nn.Conv1d(width, width, 1), nn.ReLU(), nn.Conv1d(width, 1, 1)
        )

    def forward(self, x):
        x, total = self.first(x), 0
        for block in self.blocks:
            x, skip = block(x)
            total = total + skip
        return self.last(total)


def build_optimizer(model, c: OptimConfig):
    betas = (c.b1, c.b2) if healthy else (c.b2, c.b1)
    return torch.optim.Adam(model.parameters(), lr=c.lr, betas=betas, eps=c.eps)


def main():
    cfg = TrainConfig(optim=OptimConfig())
    val_x, val_h = chirps(256, cfg.length)
    model = Denoiser()
    opt = build_optimizer(model, cfg.optim)
    avg = None
    for step in range(1, cfg.steps + 1):
        x, h = chirps(cfg.batch, cfg.length)
        loss = (model(x) - h).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        avg = loss.item() if avg is None else 0.95 * avg + 0.05 * loss.item()
        if step % cfg.eval_every == 0:
            model.eval()
            with torch.no_grad():
                err = (model(val_x) - val_h).pow(2).mean().item()
            model.train()
            print(f"step {step} loss {avg:.4f} val {err:.4f} (zero: {val_h.pow(2).mean():.4f})")


main()
