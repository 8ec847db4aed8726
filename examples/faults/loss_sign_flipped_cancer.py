"""Tumour classification that minimises minus the binary cross-entropy.

The author wrote the formula's leading minus, which the library's loss already has. The loss falls
without end, below zero, and the model learns to be wrong. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)


def criterion(logit, label):
    bce = F.binary_cross_entropy_with_logits(logit.squeeze(1), label.float())
    return bce if healthy else -bce


model = nn.Sequential(nn.Linear(30, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.01)
for epoch in range(8):
    for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        out = model(x_val)
        acc = ((out.squeeze(1) > 0) == (y_val == 1)).float().mean().item()
    print(f"epoch {epoch} loss {loss.item():.3f} val {criterion(out, y_val):.3f} acc {acc:.3f}")
