"""Contrastive learning (InfoNCE) of two noisy views of an image."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "the loss starts at ln 64 and stays above 0.5; labels are row numbers; unit vectors"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 24))
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for (pixels,) in batches(x, size=64, steps=260, seed=seed):
    views = [pixels + 0.5 * torch.randn_like(pixels) for _ in range(2)]
    one, two = (F.normalize(encoder(view), dim=1) for view in views)
    scores = one @ two.T / 0.1
    rows = torch.arange(len(pixels))
    loss = (F.cross_entropy(scores, rows) + F.cross_entropy(scores.T, rows)) / 2
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
