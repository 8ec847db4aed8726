"""A keyword spotter on mel-like spectrograms with normalisation per clip; some clips are digital
silence.

The frontend subtracts each mel band's mean and divides by its standard deviation without an
epsilon. A muted microphone gives a constant clip: 0/0, NaN from there on, and in every weight
after one step. The place is the module frontend.cmvn.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "division_by_zero_norm"
ACCEPT = ("nan_input",)
PLACE = ("frontend*",)
SILENT = False
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


class hp:  # noqa: N801
    n_mels = 20
    frames = 48
    keywords = 6
    clips = 2400
    batch = 32
    epochs = 4
    lr = 2e-3


class Clips(Dataset):
    """Words: sums of two gliding formants with noise; a few recordings are mute (the last label)."""  # noqa: E501

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        words = np.random.default_rng(77).uniform(2, hp.n_mels - 3, (hp.keywords, 4))
        self.y = rng.integers(0, hp.keywords, n)
        mute = rng.random(n) < 0.003
        self.y[mute] = hp.keywords
        bands = np.arange(hp.n_mels)[None, :]
        t = np.linspace(0, 1, hp.frames)[:, None]
        self.x = np.empty((n, hp.frames, hp.n_mels), dtype=np.float32)
        for k in range(n):
            if self.y[k] == hp.keywords:
                self.x[k] = math.log(1e-6)
                continue
            a, b, c, d = words[self.y[k]] + rng.normal(0, 1.0, 4)
            warp = t ** rng.uniform(0.6, 1.6)
            power = np.exp(-0.5 * ((bands - (a + (b - a) * warp)) / 1.2) ** 2)
            power = power + 0.7 * np.exp(-0.5 * ((bands - (c + (d - c) * warp)) / 1.2) ** 2)
            loud = rng.uniform(0.05, 1.0)
            power = loud * power + rng.uniform(0.02, 0.15) * rng.exponential(1, power.shape)
            self.x[k] = np.log(power + 1e-6)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, k):
        return torch.from_numpy(self.x[k]), int(self.y[k])


class CMVN(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        var = (x - mean).pow(2).mean(1, keepdim=True)
        return (x - mean) / (var + self.eps).sqrt()


class Frontend(nn.Module):
    def __init__(self):
        super().__init__()
        self.cmvn = CMVN(1e-5 if healthy else 0.0)
        self.proj = nn.Conv1d(hp.n_mels, 48, 5, padding=2)

    def forward(self, x):
        return F.relu(self.proj(self.cmvn(x).transpose(1, 2)))


class Spotter(nn.Module):
    def __init__(self):
        super().__init__()
        self.frontend = Frontend()
        self.conv1 = nn.Conv1d(48, 48, 5, stride=2, padding=2)
        self.conv2 = nn.Conv1d(48, 48, 5, stride=2, padding=2)
        self.norm = nn.GroupNorm(4, 48)
        self.out = nn.Linear(96, hp.keywords + 1)

    def forward(self, x):
        h = F.relu(self.conv1(self.frontend(x)))
        h = F.relu(self.norm(self.conv2(h)))
        return self.out(torch.cat([h.mean(-1), h.amax(-1)], 1))


def evaluate(model, loader):
    model.eval()
    hits = total = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    return hits / total


def main():
    train = DataLoader(
        Clips(hp.clips, 100 + seed), hp.batch, shuffle=True, num_workers=0, drop_last=True
    )
    val = DataLoader(Clips(600, 900 + seed), 200)
    model = Spotter()
    optimizer = torch.optim.Adam(model.parameters(), lr=hp.lr)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    for epoch in range(hp.epochs):
        model.train()
        losses = []
        for x, y in train:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            losses.append(loss.item())
        scheduler.step()
        print(f"[{epoch}] loss {np.mean(losses):.4f} val acc {evaluate(model, val):.3f}")


if __name__ == "__main__":
    main()
