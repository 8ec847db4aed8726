"""Mixup: pairs of images and of their labels are mixed; the training accuracy means little."""

import numpy as np
import torch
from data import arguments, batches, digits
from torch import nn

ODD = "soft targets, a training loss that stays far above that of validation"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(6):
    model.train()
    for rows, labels in batches(x, y, size=64, steps=21, seed=epoch):
        share = float(np.random.beta(0.4, 0.4))
        other = torch.randperm(len(rows))
        one_hot = nn.functional.one_hot(labels, 10).float()
        mixed = share * rows + (1 - share) * rows[other]
        soft = share * one_hot + (1 - share) * one_hot[other]
        optimizer.zero_grad()
        loss = criterion(model(mixed), soft)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val), y_val)
    print(f"epoch {epoch}: train {loss.item():.3f}, val {val.item():.3f}")
