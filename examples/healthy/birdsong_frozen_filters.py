"""Tells bird calls apart with a fixed bank of filters; only the classifier on top is trained.

The first layer is a bank of band-pass filters computed from their formula, as in a cochlea, and
kept as it is: with 400 calls there is too little to learn it from. Its parameters ask for no
gradient and are not given to the optimizer.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the first layer's weights are frozen on purpose and never change"
RATE, LENGTH = 800, 320


class FilterBank(nn.Module):
    def __init__(self, n_bands=24, taps=41):
        super().__init__()
        t = (torch.arange(taps) - taps // 2) / RATE
        pitch = torch.logspace(math.log10(25), math.log10(350), n_bands).unsqueeze(1)
        envelope = torch.exp(-0.5 * (t / 0.012) ** 2)
        sine = envelope * torch.sin(2 * math.pi * pitch * t)
        cosine = envelope * torch.cos(2 * math.pi * pitch * t)
        kernels = torch.cat([sine, cosine]).unsqueeze(1)
        self.kernels = nn.Parameter(kernels / kernels.norm(dim=-1, keepdim=True))
        self.kernels.requires_grad_(False)

    def forward(self, sound):
        sine, cosine = F.conv1d(sound.unsqueeze(1), self.kernels, stride=8).chunk(2, dim=1)
        return torch.log1p(10 * (sine**2 + cosine**2))


class CallClassifier(nn.Module):
    def __init__(self, n_species):
        super().__init__()
        self.bank = FilterBank()
        self.norm = nn.BatchNorm1d(24)
        self.conv = nn.Conv1d(24, 24, 5)
        self.head = nn.Linear(24, n_species)

    def forward(self, sound):
        h = self.norm(self.bank(sound))
        h = torch.relu(self.conv(h))
        return self.head(h.amax(-1))


def calls(n, g):
    species = torch.randint(0, 4, (n,), generator=g)
    t = torch.arange(LENGTH) / RATE
    base = 90 + 60 * torch.rand(n, 1, generator=g)
    start, end = torch.tensor([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [1.5, 1.5]])[species].T
    slide = start.unsqueeze(1) + (end - start).unsqueeze(1) * t / t[-1]
    trill = 0.5 + 0.5 * torch.sign(torch.sin(2 * math.pi * 18 * t))
    loudness = torch.where((species == 3).unsqueeze(1), trill, torch.ones_like(trill))
    angle = 2 * math.pi * torch.cumsum(base * slide, dim=1) / RATE
    sound = loudness * torch.sin(angle + 6.28 * torch.rand(n, 1, generator=g))
    return sound + 0.7 * torch.randn(n, LENGTH, generator=g), species


_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
sound, species = calls(700, g)
loader = DataLoader(TensorDataset(sound[:400], species[:400]), batch_size=20, shuffle=True)
model = CallClassifier(4)
optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=2e-3)
for epoch in range(1, 13):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        right = (model(sound[400:]).argmax(1) == species[400:]).float().mean().item()
    if epoch % 3 == 0:
        print(f"epoch {epoch:2d}  loss {total / len(loader):.3f}  held-out {right:.1%}")
