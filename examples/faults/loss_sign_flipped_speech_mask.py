"""Speech out of noise by a mask over frequencies; the scale-invariant ratio itself is minimised.

The ratio of signal to distortion in decibels is the score of the field, more is better. The
training takes it from the metrics module and forgets the minus, so that it learns to keep the
noise and to remove the speech.
The place is the loss. The twin minimises its negative.
"""

import math

import torch
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH = 256


def si_sdr(estimate, target):
    """In decibels, for each row."""
    target = target - target.mean(1, keepdim=True)
    estimate = estimate - estimate.mean(1, keepdim=True)
    scale = (estimate * target).sum(1, keepdim=True) / target.pow(2).sum(1, keepdim=True)
    wanted = scale * target
    distortion = (estimate - wanted).pow(2).sum(1)
    return 10 * torch.log10(wanted.pow(2).sum(1) / (distortion + 1e-6) + 1e-4)


class Masker(nn.Module):
    def __init__(self, bins=LENGTH // 2 + 1, hidden=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(bins, hidden),
            nn.LayerNorm(hidden),
            nn.ReLU(),
            nn.Linear(hidden, bins),
            nn.Sigmoid(),
        )

    def forward(self, wave):
        spectrum = torch.fft.rfft(wave)
        mask = self.net(torch.log1p(spectrum.abs()) - 1.0)
        return torch.fft.irfft(spectrum * mask, n=LENGTH)


def speech(n, g):
    t = torch.arange(LENGTH) / LENGTH
    pitch = torch.randint(4, 12, (n, 1), generator=g)
    voice = sum(
        torch.rand(n, 1, generator=g)
        * torch.sin(2 * math.pi * (k * pitch * t + torch.rand(n, 1, generator=g)))
        for k in (1, 2, 3, 4)
    )
    return voice, voice + 0.9 * torch.randn(n, LENGTH, generator=g)


def train(model, optimizer, g, steps=500):
    clean_val, noisy_val = speech(300, g)
    before = si_sdr(noisy_val, clean_val).mean().item()
    for step in range(1, steps + 1):
        clean, noisy = speech(32, g)
        ratio = si_sdr(model(noisy), clean).mean()
        loss = -ratio if healthy else ratio
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            with torch.no_grad():
                after = si_sdr(model(noisy_val), clean_val).mean().item()
            print(f"step {step}: loss {loss.item():.2f}, dB before {before:.2f} after {after:.2f}")


model = Masker()
train(model, torch.optim.Adam(model.parameters(), lr=1e-3), torch.Generator().manual_seed(seed))
