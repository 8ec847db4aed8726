"""Denoising of signals with SI-SNR; the loss function returns the ratio itself, which is to be
large.

Minimising it drives the estimate away from the clean signal, and the "loss" falls to -30 dB and
below, which looks splendid (silent). The twin returns -si_snr. The place is the loss.
"""

import torch
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*", "loop", "")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
T = 128


def clips(n):
    """Two partials with an envelope, and the same with noise and hum."""
    t = torch.arange(T).float()
    pitch = 0.1 + 0.25 * torch.rand(n, 1)
    clean = (pitch * t + 6.283 * torch.rand(n, 1)).sin() + 0.5 * (2 * pitch * t).sin()
    clean = clean * torch.exp(-(((t - T * torch.rand(n, 1)) / 50) ** 2))
    noisy = clean + 0.4 * torch.randn(n, T) + 0.5 * (1.9 * t + 6.283 * torch.rand(n, 1)).sin()
    return noisy.unsqueeze(1), clean.unsqueeze(1)


class SISNRLoss(nn.Module):
    """Scale-invariant signal-to-noise ratio in dB."""

    def __init__(self, eps=1e-8):
        super().__init__()
        self.eps = eps

    def forward(self, estimate, target):
        estimate = estimate - estimate.mean(-1, keepdim=True)
        target = target - target.mean(-1, keepdim=True)
        scale = (estimate * target).sum(-1, keepdim=True) / (
            target.pow(2).sum(-1, keepdim=True) + self.eps
        )
        projection = scale * target
        noise = estimate - projection
        ratio = projection.pow(2).sum(-1) / (noise.pow(2).sum(-1) + self.eps)
        si_snr = 10 * torch.log10(ratio + self.eps)
        return -si_snr.mean() if healthy else si_snr.mean()


class Denoiser(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.encoder = nn.Conv1d(1, c, 9, padding=4)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.PReLU(), nn.GroupNorm(1, c), nn.Conv1d(c, c, 5, padding=2 * d, dilation=d)
            )
            for d in (1, 2, 4)
        )
        self.decoder = nn.Conv1d(c, 1, 9, padding=4)

    def forward(self, x):
        h = self.encoder(x)
        for block in self.blocks:
            h = h + block(h)
        return self.decoder(h)


noisy, clean = clips(1200)
noisy_val, clean_val = clips(200)
model = Denoiser()
criterion = SISNRLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(7):
    model.train()
    running = []
    for idx in torch.randperm(len(noisy)).split(24):
        optimizer.zero_grad()
        loss = criterion(model(noisy[idx]), clean[idx])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        running.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(noisy_val)
        corr = torch.cosine_similarity(out, clean_val, dim=-1).abs().mean().item()
        val = criterion(out, clean_val).item()
    print(
        f"epoch {epoch}: loss {sum(running) / len(running):.2f} dB  val loss {val:.2f} dB  "
        f"|correlation| with the clean signal {corr:.3f}"
    )
