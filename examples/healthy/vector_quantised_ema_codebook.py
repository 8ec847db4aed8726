"""A VQ-VAE over spectrogram frames: the codebook has no gradient and no optimizer, half of the
loss is detached, and it is sound.

It looks odd since the codebook is a buffer that moves by running means, the encoder's gradient is
copied past an argmin (straight through), dead codes are set anew from the batch, and the
commitment term grows at first. This is the usual training of van den Oord et al. with moving
averages.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = "the codebook has no gradient and no optimizer, and half of the loss is detached"
_, seed = arguments(__doc__)


class Quantiser(nn.Module):
    def __init__(self, codes=48, dim=12, decay=0.97, beta=0.25):
        super().__init__()
        self.decay, self.beta = decay, beta
        self.register_buffer("book", torch.randn(codes, dim))
        self.register_buffer("count", torch.ones(codes))
        self.register_buffer("total", self.book.clone())

    def forward(self, z):
        flat = z.reshape(-1, z.shape[-1])
        d = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.book.T + self.book.pow(2).sum(1)
        index = d.argmin(1)
        q = self.book[index].view_as(z)
        if self.training:
            self.update(flat.detach(), index)
        commit = self.beta * F.mse_loss(z, q.detach())
        return z + (q - z).detach(), commit, index

    @torch.no_grad()
    def update(self, flat, index):
        one = F.one_hot(index, len(self.book)).float()
        self.count.mul_(self.decay).add_(one.sum(0), alpha=1 - self.decay)
        self.total.mul_(self.decay).add_(one.T @ flat, alpha=1 - self.decay)
        dead = self.count < 0.5
        if dead.any():
            fresh = flat[torch.randint(0, len(flat), (int(dead.sum()),))]
            self.total[dead], self.count[dead] = fresh, 1.0
        self.book.copy_(self.total / self.count.unsqueeze(1))


class VQVAE(nn.Module):
    def __init__(self, bands=20, width=48, dim=12):
        super().__init__()
        self.enc = nn.Sequential(
            nn.Conv1d(bands, width, 4, 2, 1), nn.GELU(), nn.Conv1d(width, width, 3, 1, 1), nn.GELU()
        )
        self.to_code = nn.Linear(width, dim)
        self.quantiser = Quantiser(dim=dim)
        self.from_code = nn.Linear(dim, width)
        self.dec = nn.Sequential(
            nn.Conv1d(width, width, 3, 1, 1), nn.GELU(), nn.ConvTranspose1d(width, bands, 4, 2, 1)
        )

    def forward(self, x):
        z = self.to_code(self.enc(x).transpose(1, 2))
        q, commit, index = self.quantiser(z)
        return self.dec(self.from_code(q).transpose(1, 2)), commit, index


def speech_like(n, g, shapes):
    which = torch.randint(0, len(shapes), (n, 8), generator=g)
    gain = 0.7 + 0.6 * torch.rand(n, 8, 1, generator=g)
    x = (shapes[which] * gain).transpose(1, 2)
    x = F.interpolate(x, size=32, mode="linear")
    return x + 0.3 * torch.randn(x.shape, generator=g)


g = torch.Generator().manual_seed(seed + 15)
shapes = F.avg_pool1d(torch.randn(12, 1, 24, generator=g), 5, 1).squeeze(1) * 2.0
x, xv = speech_like(3000, g, shapes), speech_like(500, g, shapes)
mean, std = x.mean((0, 2), keepdim=True), x.std((0, 2), keepdim=True)
x, xv = (x - mean) / std, (xv - mean) / std
model = VQVAE()
opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
STEPS = 800
sched = torch.optim.lr_scheduler.LambdaLR(
    opt, lambda s: min(1.0, (s + 1) / 40) * (0.05 + 0.475 * (1 + math.cos(math.pi * s / STEPS)))
)
for step in range(1, STEPS + 1):
    batch = x[torch.randint(0, len(x), (48,))]
    out, commit, _ = model(batch)
    recon = F.mse_loss(out, batch)
    opt.zero_grad()
    (recon + commit).backward()
    opt.step()
    sched.step()
    if step % 100 == 0:
        model.eval()
        with torch.no_grad():
            out, _, index = model(xv)
            use = torch.bincount(index, minlength=48).float()
            use = use / use.sum()
            perplexity = torch.exp(-(use * (use + 1e-9).log()).sum()).item()
        model.train()
        print(
            f"step {step} recon {recon.item():.4f} commit {commit.item():.4f} | val {F.mse_loss(out, xv).item():.4f} perplexity {perplexity:.1f} of 48"  # noqa: E501
        )
