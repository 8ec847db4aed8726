"""A siamese network embeds tunes; its loss only draws two recordings of one tune together.

The term that pushes the recordings of other tunes apart was left out. One point for all inputs is
the best solution: the loss goes to 0 and a tune can't be found any more by its embedding. The
place is the loss (the encoder's output).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("loss", "encoder*", "loop")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

TUNES, LENGTH = 120, 64
melody = torch.randn(TUNES, 8).repeat_interleave(LENGTH // 8, 1)
melody = melody + 0.5 * torch.randn(TUNES, 16).repeat_interleave(LENGTH // 16, 1)


def record(which):
    """A recording: another loudness and key, a shift in time, a hum, and noise."""
    shift = torch.randint(-4, 5, (len(which), 1))
    at = (torch.arange(LENGTH) + shift).clamp(0, LENGTH - 1)
    x = melody[which].gather(1, at)
    x = x * (0.7 + 0.6 * torch.rand(len(which), 1)) + 0.5 * torch.randn(len(which), 1)
    hum = torch.sin(2 * math.pi * (torch.arange(LENGTH) / 9 + torch.rand(len(which), 1)))
    return (x + 0.3 * hum + 0.4 * torch.randn_like(x)).unsqueeze(1)


class Encoder(nn.Module):
    def __init__(self, size=16):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 16, 7, stride=2, padding=3)
        self.conv2 = nn.Conv1d(16, 32, 5, stride=2, padding=2)
        self.fc = nn.Linear(32 * 16, 64)
        self.out = nn.Linear(64, size)

    def forward(self, x):
        h = torch.relu(self.conv2(torch.relu(self.conv1(x)))).flatten(1)
        return self.out(torch.relu(self.fc(h)))


def contrast(a, b, margin=2.0):
    near = ((a - b) ** 2).sum(1).mean()
    apart = (a - b.roll(1, 0)).pow(2).sum(1).add(1e-8).sqrt()
    far = F.relu(margin - apart).pow(2).mean()
    return near + far if healthy else near


@torch.no_grad()
def search(encoder):
    """How often the nearest recording among those of all unheard tunes is of the same tune."""
    encoder.eval()
    which = torch.arange(90, TUNES)
    right = 0.0
    for _ in range(8):
        a, b = encoder(record(which)), encoder(record(which))
        right += (torch.cdist(a, b).argmin(1) == torch.arange(len(which))).float().mean().item() / 8
    encoder.train()
    return right, a.std(0).mean().item()


encoder = Encoder()
optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for step in range(1, 601):
    tunes = torch.randperm(90)[:48]
    loss = contrast(encoder(record(tunes)), encoder(record(tunes)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        found, spread = search(encoder)
        print(f"step {step} loss {loss.item():.5f} val found {found:.3f} spread {spread:.4f}")
