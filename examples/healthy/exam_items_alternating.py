"""Difficulty of exam questions and ability of pupils (item response theory), in turns."""

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

ODD = "two optimizers in turns, each with the other half frozen; right answers are partly luck"

_, seed = arguments(__doc__)
PUPILS, ITEMS = 300, 40

# %% answers: the 2PL model with a tenth of missing ones
g = torch.Generator().manual_seed(30 + seed)
true_ability = torch.randn(PUPILS, generator=g)
true_difficulty = torch.randn(ITEMS, generator=g)
true_slope = 0.7 + torch.rand(ITEMS, generator=g)
p = (true_slope * (true_ability[:, None] - true_difficulty)).sigmoid()
answers = (torch.rand(PUPILS, ITEMS, generator=g) < p).float()
kind = torch.rand(PUPILS, ITEMS, generator=g)
train, test = kind < 0.8, (kind >= 0.8) & (kind < 0.9)

# %% parameters
ability = nn.Parameter(0.1 * torch.randn(PUPILS))
difficulty = nn.Parameter(torch.zeros(ITEMS))
log_slope = nn.Parameter(torch.zeros(ITEMS))
pupils_step = torch.optim.Adam([ability], lr=0.05)
items_step = torch.optim.Adam([difficulty, log_slope], lr=0.05)


def logits():
    return log_slope.exp() * (ability[:, None] - difficulty)


def penalty():
    prior = ability.square().sum() + difficulty.square().sum() + 4 * log_slope.square().sum()
    return 0.5 * prior / train.sum()


# %% in turns: ten steps for the pupils, ten for the items
for turn in range(16):
    optimizer = pupils_step if turn % 2 == 0 else items_step
    ability.requires_grad_(turn % 2 == 0)
    difficulty.requires_grad_(turn % 2 == 1)
    log_slope.requires_grad_(turn % 2 == 1)
    for _ in range(10):
        optimizer.zero_grad()
        nll = F.binary_cross_entropy_with_logits(logits()[train], answers[train])
        loss = nll + penalty()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        held = F.binary_cross_entropy_with_logits(logits()[test], answers[test]).item()
        floor = F.binary_cross_entropy(p[test], answers[test]).item()
    name = "pupils" if turn % 2 == 0 else "items"
    print(f"turn {turn:2d} ({name}): loss {loss.item():.4f} test {held:.4f} floor {floor:.4f}")

# %% agreement with the truth
with torch.no_grad():
    pair = torch.corrcoef(torch.stack([difficulty, true_difficulty]))[0, 1]
print(f"correlation of the difficulties {pair:.3f}")
