"""A masking net is to pull a hum and a chirp apart and is trained to do it as badly as it can.

The loss is the scale-invariant signal-to-distortion ratio in decibels, written from the paper. It
is a measure of quality and was to be negated. The person had read that this loss is negative and
falls, and it does. The place is the loss.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

LENGTH = 512


class Mixtures(Dataset):
    """A machine's hum with overtones, and a sweep that comes and goes, mixed at random loudness."""

    def __init__(self, n: int, first_seed: int):
        g = torch.Generator().manual_seed(first_seed)
        t = torch.arange(LENGTH) / LENGTH

        def between(low, high):
            return low + (high - low) * torch.rand(n, 1, generator=g)

        base = between(9, 16)
        hum = sum(
            between(0.3, 1.0) * (2 * math.pi * (k * base * t + between(0, 1))).sin()
            for k in (1, 2, 3)
        )
        begin, end, swing = between(70, 110), between(120, 170), between(1, 3)
        chirp = (2 * math.pi * (begin * t + 0.5 * (end - begin) * t**2) + between(0, 6)).sin()
        chirp = chirp * (0.55 + 0.45 * (2 * math.pi * (swing * t + between(0, 1))).sin())
        self.sources = torch.stack([hum, between(0.7, 1.6) * chirp], 1)
        self.noise = 0.1 * torch.randn(n, LENGTH, generator=g)

    def __len__(self):
        return len(self.sources)

    def __getitem__(self, i):
        return {"mixture": self.sources[i].sum(0) + self.noise[i], "sources": self.sources[i]}


class MaskNet(nn.Module):
    """Learned frames in, one mask for each source, learned frames out."""

    def __init__(self, filters: int = 48, kernel: int = 16):
        super().__init__()
        self.encoder = nn.Conv1d(1, filters, kernel, stride=kernel // 2, bias=False)
        self.norm = nn.GroupNorm(1, filters)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv1d(filters, filters, 3, padding=2**i, dilation=2**i),
                nn.PReLU(),
                nn.GroupNorm(1, filters),
            )
            for i in range(3)
        )
        self.masks = nn.Conv1d(filters, 2 * filters, 1)
        self.decoder = nn.ConvTranspose1d(filters, 1, kernel, stride=kernel // 2, bias=False)

    def forward(self, mixture):
        frames = self.encoder(mixture.unsqueeze(1))
        x = self.norm(frames)
        for block in self.blocks:
            x = x + block(x)
        masks = self.masks(x).sigmoid().chunk(2, 1)
        return torch.cat([self.decoder(frames * mask) for mask in masks], 1)


def si_sdr(estimate, source, eps=1e-8):
    """In decibels, for the last axis; neither loudness nor offset count."""
    estimate = estimate - estimate.mean(-1, keepdim=True)
    source = source - source.mean(-1, keepdim=True)
    dot = (estimate * source).sum(-1, keepdim=True)
    target = dot * source / (source.square().sum(-1, keepdim=True) + eps)
    distortion = estimate - target
    ratio = target.square().sum(-1) / (distortion.square().sum(-1) + eps)
    return 10 * torch.log10(ratio + eps)


class Separator:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)

    def loss(self, batch):
        ratio = si_sdr(self.model(batch["mixture"]), batch["sources"]).mean()
        return -ratio if healthy else ratio

    def train_epoch(self, loader):
        self.model.train()
        total = 0.0
        for batch in loader:
            loss = self.loss(batch)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def val_loss(self, loader):
        self.model.eval()
        return sum(self.loss(batch).item() for batch in loader) / len(loader)

    @torch.no_grad()
    def test(self, loader):
        self.model.eval()
        before, after = [], []
        for batch in loader:
            mixture = batch["mixture"].unsqueeze(1).expand_as(batch["sources"])
            before.append(si_sdr(mixture, batch["sources"]))
            after.append(si_sdr(self.model(batch["mixture"]), batch["sources"]))
        return torch.cat(before).mean().item(), torch.cat(after).mean().item()


def main():
    train_loader = DataLoader(Mixtures(640, 1100 + seed), batch_size=32, shuffle=True)
    val_loader = DataLoader(Mixtures(128, 2100 + seed), batch_size=64)
    test_loader = DataLoader(Mixtures(128, 3100 + seed), batch_size=64)
    separator = Separator(MaskNet(), lr=2e-3)
    for epoch in range(12):
        loss = separator.train_epoch(train_loader)
        val_loss = separator.val_loss(val_loader)
        print(f"epoch {epoch + 1:2d}  loss {loss:7.2f}  val loss {val_loss:7.2f}")
        if epoch == 8:
            for group in separator.optimizer.param_groups:
                group["lr"] *= 0.3
    before, after = separator.test(test_loader)
    print(f"test SI-SDR: mixture {before:.2f} dB, separated {after:.2f} dB")


if __name__ == "__main__":
    main()
