"""Finds parcels that will be lost, one in forty; the loader draws the rare ones more often.

The scores are corrected for the changed share before a threshold is chosen, and the validation
has the true shares.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

ODD = "rows of the rare class come dozens of times in an epoch, and the validation loss differs"

_, seed = arguments(__doc__)


def parcels(n, generator):
    lost = torch.rand(n, generator=generator) < 0.025
    x = torch.randn(n, 10, generator=generator)
    x[:, 0] += 1.3 * lost
    x[:, 1] -= 0.9 * lost
    x[:, 2] *= 1 + 0.8 * lost
    return x, lost.float()


g = torch.Generator().manual_seed(seed)
x, y = parcels(10000, g)
x_val, y_val = parcels(5000, g)
share = y.mean().item()
weights = torch.where(y > 0, 0.25 / share, 0.75 / (1 - share))
sampler = WeightedRandomSampler(weights.tolist(), 6000)
loader = DataLoader(TensorDataset(x, y), batch_size=100, sampler=sampler)
model = nn.Sequential(
    nn.Linear(10, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 1)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
shift = math.log(share / (1 - share)) - math.log(0.25 / 0.75)
for epoch in range(8):
    model.train()
    losses = []
    for rows, lost in loader:
        loss = nn.functional.binary_cross_entropy_with_logits(model(rows)[:, 0], lost)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        scores = model(x_val)[:, 0] + shift
        error = nn.functional.binary_cross_entropy_with_logits(scores, y_val)
    first = scores.topk(250).indices
    found = (y_val[first].sum() / y_val.sum()).item()
    print(
        f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, validation {error:.3f}, "
        f"lost ones among the first 5 % {found:.2f}"
    )
