"""Retuning a keyword spotter for new words: the list of what to freeze catches too much.

The first stage of a trained listener is to stay as it is, and is frozen by name. The test looks
for "conv1" anywhere in the name, and the new blocks are called "conv10" and "conv11"; only the
last layer learns the new words. The place is the modules conv10 and conv11.
The twin tests for "conv1." at the start of the name.
"""

import math
from collections import OrderedDict

import torch
from data import arguments
from torch import nn

KIND = "frozen_parameters"
ACCEPT = ()
PLACE = ("conv10", "conv11", "conv10.weight", "conv11.weight", "optimizer")
SILENT = False
EXACT = True
EARLY = True


def build(words):
    return nn.Sequential(
        OrderedDict(
            conv1=nn.Conv1d(8, 24, 3, padding=1),
            act1=nn.ReLU(),
            conv10=nn.Conv1d(24, 24, 5, stride=2, padding=2),
            act10=nn.ReLU(),
            conv11=nn.Conv1d(24, 24, 5, stride=2, padding=2),
            act11=nn.ReLU(),
            pool=nn.AdaptiveAvgPool1d(1),
            flat=nn.Flatten(),
            words=nn.Linear(24, words),
        )
    )


def utterances(n, words, first, g):
    """Eight bands by 32 frames; a word is an order of three band bursts."""
    label = torch.randint(0, words, (n,), generator=g)
    orders = torch.stack(
        [
            torch.randperm(8, generator=torch.Generator().manual_seed(first + w // 2))[:3]
            for w in range(words)
        ]
    )
    orders[1::2] = orders[1::2].flip(1)
    x = 0.4 * torch.randn(n, 8, 32, generator=g)
    shift = torch.randint(0, 6, (n, 1), generator=g)
    for k in range(3):
        centre = shift + 5 + 8 * k
        burst = torch.exp(-((torch.arange(32) - centre) ** 2) / 8)
        x[torch.arange(n), orders[label, k]] += 1.5 * burst
    return x, label


def fit(model, x, y, steps, lr):
    params = [p for p in model.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=lr)
    for step in range(steps):
        idx = torch.randint(0, len(x), (48,))
        loss = nn.functional.cross_entropy(model(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 80 == 79:
            yield step + 1, loss.item()


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed + 1)
x, y = utterances(1500, 10, 200, g)
x_val, y_val = utterances(400, 10, 200, g)

# the first stage as it was delivered: a bank of onsets and sums over neighbouring bands
model = build(10)
with torch.no_grad():
    for i in range(24):
        model.conv1.weight[i] = 0.05 * torch.randn(8, 3)
        time = torch.tensor([[0.33, 0.33, 0.33], [-0.6, 0.0, 0.6], [0.6, 0.0, -0.6]])[i // 8]
        model.conv1.weight[i, i % 8] += math.sqrt(2) * time
for name, p in model.named_parameters():
    keep = name.startswith("conv1.") if healthy else "conv1" in name
    if keep:
        p.requires_grad_(False)

for step, loss in fit(model, x, y, 320, 3e-3):
    with torch.no_grad():
        hit = (model(x_val).argmax(1) == y_val).float().mean()
    print(f"step {step}: loss {loss:.3f}, words understood {hit:.3f}")
