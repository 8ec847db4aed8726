"""Recognises which of 24 household appliances is running from its current, with a small
transformer; the scores go through softmax twice.

The author wanted probabilities on the dashboard and closed the network with a softmax. The
cross-entropy of PyTorch applies one by itself, and after two of them even a certain answer leaves a
high loss and small gradients.
The place is the softmax at the output.
The twin hands out raw scores.
"""

import math

import torch
from data import arguments, batches
from torch import nn

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("output*", "loss*", "head", "head.2")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
APPLIANCES = 24
PATCH, PATCHES = 10, 12


def currents(n):
    """Six half waves; appliances differ in harmonics, phase and in how the start decays."""
    kind = torch.randint(0, APPLIANCES, (n,))
    g = torch.Generator().manual_seed(99)
    harmonics = torch.randn(APPLIANCES, 3, generator=g) * torch.tensor([0.5, 0.5, 0.4])
    inrush = 1.2 * torch.rand(APPLIANCES, generator=g)
    t = torch.arange(PATCH * PATCHES) / 40
    turn = 0.25 * torch.randn(n, 1)
    wave = torch.sin(2 * math.pi * t + turn)
    for k, order in enumerate((3, 5, 7)):
        wave = wave + harmonics[kind, k, None] * torch.sin(order * (2 * math.pi * t + turn))
    wave = wave * (1 + inrush[kind, None] * torch.exp(-t))
    wave = wave * torch.exp(0.2 * torch.randn(n, 1)) + 0.4 * torch.randn(n, PATCH * PATCHES)
    return wave.view(n, PATCHES, PATCH), kind


class CurrentFormer(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Linear(PATCH, width)
        self.place = nn.Parameter(0.02 * torch.randn(PATCHES, width))
        layer = nn.TransformerEncoderLayer(
            width, nhead=4, dim_feedforward=64, dropout=0.0, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, APPLIANCES))
        if not healthy:
            self.head.append(nn.Softmax(dim=-1))

    def forward(self, wave):
        return self.head(self.encoder(self.embed(wave) + self.place).mean(1))


x, kind = currents(2400)
x_val, kind_val = currents(600)
model = CurrentFormer()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=350)
criterion = nn.CrossEntropyLoss()

for step, (wave, target) in enumerate(batches(x, kind, size=48, steps=350, seed=seed), 1):
    loss = criterion(model(wave), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 70 == 0:
        model.eval()
        with torch.no_grad():
            said = model(x_val)
        model.train()
        print(
            f"step {step}: loss {loss.item():.4f} val loss {criterion(said, kind_val):.4f} "
            f"val accuracy {(said.argmax(1) == kind_val).float().mean():.3f}"
        )
