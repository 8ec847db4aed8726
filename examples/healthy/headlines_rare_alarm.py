"""Picks the few headlines that an editor should see at once; one in twenty-five is such a one.

Words are counted in a sparse bag; the batches are of eight headlines, drawn so that urgent ones
come up as often as others, and a prior correction brings the scores back to the real share. The
labels are smoothed a little. Average precision on untouched data is what counts.
"""

import math
import random

import torch
from data import arguments
from sklearn.metrics import average_precision_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

ODD = "rare class drawn with replacement, batches of eight, mostly-zero inputs, smoothed labels"

WORDS = 300
URGENT = range(25)
SMOOTH = 0.05


def headlines(n, r):
    bags, urgent = torch.zeros(n, WORDS), torch.zeros(n)
    for i in range(n):
        urgent[i] = float(r.random() < 0.04)
        words = [min(int(r.expovariate(1 / 70)) + 25, WORDS - 1) for _ in range(r.randint(5, 9))]
        hints = r.choice([1, 2, 3]) if urgent[i] else int(r.random() < 0.12)
        words += [r.choice(URGENT) for _ in range(hints)]
        bags[i, words] = 1.0
    return bags, urgent


def validate(model, bags, urgent, correction):
    model.eval()
    with torch.no_grad():
        score = model(bags).squeeze(1) + correction
    model.train()
    loss = nn.functional.binary_cross_entropy_with_logits(score, urgent).item()
    return loss, average_precision_score(urgent.numpy(), score.numpy())


_, seed = arguments(__doc__)
r = random.Random(seed)
bags, urgent = headlines(3000, r)
bags_val, urgent_val = headlines(2000, r)
share = urgent.mean().item()
weights = torch.where(urgent > 0, 0.5 / share, 0.5 / (1 - share))
loader = DataLoader(
    TensorDataset(bags, urgent),
    batch_size=8,
    sampler=WeightedRandomSampler(weights, num_samples=2400, replacement=True),
)
model = nn.Sequential(nn.Linear(WORDS, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
correction = math.log(share / (1 - share))
for epoch in range(1, 5):
    losses = []
    for xb, yb in loader:
        target = yb * (1 - SMOOTH) + SMOOTH / 2
        loss = nn.functional.binary_cross_entropy_with_logits(model(xb).squeeze(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    val, precision = validate(model, bags_val, urgent_val, correction)
    print(
        f"epoch {epoch}: train {sum(losses) / len(losses):.3f}, validation {val:.3f}, "
        f"average precision {precision:.3f} (by chance {share:.3f})"
    )
