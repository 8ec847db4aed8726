"""Separates mixtures of two voices with a masking net, judged in decibels over both orders."""

import torch
from data import arguments
from torch import nn

ODD = (
    "the loss is a negative number of decibels, the two outputs have no fixed order (the better "
    "permutation counts) and the input is exactly the sum of the targets: PIT with SI-SDR"
)
SAMPLES = 512
_, seed = arguments(__doc__)
torch.set_num_threads(1)
generator = torch.Generator().manual_seed(seed)


def voice(n: int, low: float, high: float):
    time = torch.arange(SAMPLES) / 4000
    pitch = low + (high - low) * torch.rand(n, 1, generator=generator)
    glide = 1 + 0.1 * torch.randn(n, 1, generator=generator) * time
    phase = 6.283 * (pitch * glide * time + torch.rand(n, 1, generator=generator))
    loud = torch.rand(n, 3, generator=generator) * torch.tensor([1.0, 0.6, 0.4])
    tone = sum(loud[:, k : k + 1] * (phase * (k + 1)).sin() for k in range(3))
    swell = 0.6 + 0.4 * (6.283 * (3 * time + torch.rand(n, 1, generator=generator))).sin()
    sound = tone * swell + 0.02 * torch.randn(n, SAMPLES, generator=generator)
    return sound / sound.std(1, keepdim=True)


def mixtures(n: int):
    sources = torch.stack([voice(n, 90, 180), voice(n, 220, 450)], 1)
    flip = torch.rand(n, generator=generator) < 0.5
    sources = torch.where(flip[:, None, None], sources.flip(1), sources)
    return sources.sum(1), sources


class Separator(nn.Module):
    def __init__(self, filters: int = 64, width: int = 48):
        super().__init__()
        self.encoder = nn.Conv1d(1, filters, 32, stride=16, bias=False)
        self.norm = nn.GroupNorm(1, filters)
        self.inward = nn.Conv1d(filters, width, 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(width, width, 3, padding=2**k, dilation=2**k),
                nn.PReLU(),
                nn.GroupNorm(1, width),
            )
            for k in range(4)
        )
        self.masks = nn.Conv1d(width, 2 * filters, 1)
        self.decoder = nn.ConvTranspose1d(filters, 1, 32, stride=16, bias=False)

    def forward(self, mixture):
        coded = self.encoder(mixture.unsqueeze(1)).relu()
        hidden = self.inward(self.norm(coded))
        for block in self.blocks:
            hidden = hidden + block(hidden)
        mask = self.masks(hidden).sigmoid().unflatten(1, (2, -1))
        parts = (mask * coded.unsqueeze(1)).flatten(0, 1)
        return self.decoder(parts).view(len(mixture), 2, -1)


def si_sdr(guess, truth):
    guess, truth = guess - guess.mean(-1, keepdim=True), truth - truth.mean(-1, keepdim=True)
    scale = (guess * truth).sum(-1, keepdim=True) / truth.square().sum(-1, keepdim=True)
    wanted = scale * truth
    noise = (guess - wanted).square().sum(-1) + 1e-8
    return 10 * torch.log10(wanted.square().sum(-1) / noise + 1e-8)


def best_order(guess, truth):
    straight = si_sdr(guess, truth).mean(1)
    crossed = si_sdr(guess.flip(1), truth).mean(1)
    return torch.maximum(straight, crossed)


mixture, sources = mixtures(800)
mixture_val, sources_val = mixtures(150)
model = Separator()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-3, total_steps=8 * 50)
for epoch in range(8):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(mixture)).split(16):
        optimizer.zero_grad()
        loss = -best_order(model(mixture[rows]), sources[rows]).mean()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        val = best_order(model(mixture_val), sources_val).mean()
    print(f"epoch {epoch + 1}: loss {total / len(mixture):.2f} dB, validation SI-SDR {val:.2f} dB")

untouched = si_sdr(mixture_val.unsqueeze(1).expand_as(sources_val), sources_val).mean()
print(f"SI-SDR {val:.2f} dB, of the mixture itself {untouched:.2f} dB")
