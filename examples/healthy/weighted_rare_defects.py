"""Rare faults of bearings, three in a hundred: the loader draws them as often as the good ones.

A weighted sampler draws with replacement, so the rare rows are seen many times an epoch. The
bias is moved back to the true share for the validation's probabilities.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

ODD = "the few rows of the rare class come dozens of times an epoch, drawn by weights on purpose"

_, seed = arguments(__doc__)


def bearings(n):
    fault = (torch.rand(n) < 0.03).float()
    x = torch.randn(n, 10)
    x[:, :4] += 1.1 * fault.unsqueeze(1)
    return x, fault


x, y = bearings(6000)
x_val, y_val = bearings(4000)
share = y.mean().item()
weights = torch.where(y > 0.5, 0.5 / share, 0.5 / (1 - share)).double()
sampler = WeightedRandomSampler(weights, num_samples=3000)
loader = DataLoader(TensorDataset(x, y), batch_size=60, sampler=sampler)
model = nn.Sequential(nn.Linear(10, 12), nn.ReLU(), nn.Dropout(0.2), nn.Linear(12, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
bce = nn.BCEWithLogitsLoss()
prior = math.log(share / (1 - share))
for epoch in range(8):
    model.train()
    for xb, yb in loader:
        loss = bce(model(xb).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        score = model(x_val).squeeze(1)
    recall = (score[y_val > 0.5] > 0).float().mean().item()
    passed = (score[y_val < 0.5] < 0).float().mean().item()
    print(
        f"epoch {epoch + 1}: loss {loss.item():.3f} val {bce(score + prior, y_val).item():.4f} "
        f"balanced accuracy {(recall + passed) / 2:.3f}"
    )
