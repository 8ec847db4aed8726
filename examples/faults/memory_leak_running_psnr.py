"""An autoencoder of telescope cut-outs; a running PSNR keeps the graphs of all steps.

The running mean of the PSNR is a tensor with a graph: each step's graph hangs on that of the step
before. The backward pass of the loss doesn't go through the PSNR's own nodes, so what they saved
is never freed. The training itself is right; memory grows with each step. The place is the loop
(running.psnr).
"""

import resource

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

SIDE = 32


def cutouts(n):
    """Two-colour cut-outs with a few sources each."""
    lin = torch.linspace(-1, 1, SIDE)
    yy, xx = torch.meshgrid(lin, lin, indexing="ij")
    img = torch.zeros(n, 2, SIDE, SIDE)
    for _ in range(3):
        c = torch.rand(n, 2, 1, 1, 1) * 1.6 - 0.8
        s = 0.08 + 0.15 * torch.rand(n, 1, 1, 1)
        colour = torch.rand(n, 2, 1, 1)
        img += colour * torch.exp(-((xx - c[:, 0]) ** 2 + (yy - c[:, 1]) ** 2) / s**2)
    return (img + 0.03 * torch.randn_like(img)).clamp(-0.1, 1.5)


class AutoEncoder(nn.Module):
    def __init__(self, latent=24):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv2d(2, 12, 4, 2, 1),
            nn.SiLU(),
            nn.Conv2d(12, 24, 4, 2, 1),
            nn.SiLU(),
            nn.Conv2d(24, 24, 4, 2, 1),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(24 * 16, latent),
        )
        self.dec = nn.Sequential(
            nn.Linear(latent, 24 * 16),
            nn.SiLU(),
            nn.Unflatten(1, (24, 4, 4)),
            nn.ConvTranspose2d(24, 24, 4, 2, 1),
            nn.SiLU(),
            nn.ConvTranspose2d(24, 12, 4, 2, 1),
            nn.SiLU(),
            nn.ConvTranspose2d(12, 2, 4, 2, 1),
        )

    def forward(self, x):
        return self.dec(self.enc(x))


class Running:
    """Exponential means for the progress bar."""

    def __init__(self, decay=0.98):
        self.decay = decay
        self.values = {}

    def update(self, **new):
        for k, v in new.items():
            v = v.detach() if healthy else v  # noqa: PLW2901
            old = self.values.get(k, v)
            self.values[k] = self.decay * old + (1 - self.decay) * v

    def __str__(self):
        return " ".join(f"{k} {float(v):.4f}" for k, v in self.values.items())


def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20


def main(steps=600, batch=48):
    train, val = cutouts(1500), cutouts(200)
    net = AutoEncoder()
    opt = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, steps)
    running = Running()
    for step in range(1, steps + 1):
        x = train[torch.randint(0, len(train), (batch,))]
        out = net(x)
        loss = F.smooth_l1_loss(out, x, beta=0.1)
        psnr = -10 * torch.log10(((out - x) ** 2).mean())
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        sched.step()
        running.update(loss=loss, psnr=psnr)
        if step % 100 == 0:
            with torch.no_grad():
                v = F.mse_loss(net(val), val).item()
            print(f"{step}: {running} val mse {v:.5f} resident {rss():.0f} MiB")


main()
