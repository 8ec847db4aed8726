"""Tumours are classified by a small gated net. The file codes benign as 2 and malignant as 4; the
author halves the codes and trains with binary cross-entropy on logits.

That makes targets of 1 and 2 instead of 0 and 1. The loss has no minimum and goes below zero, and
more and more patients are called ill, the longer it goes. The place is the loss.
"""

import numpy as np
import torch
from data import arguments, batches, cancer
from torch import nn
from torch.nn import functional as F

KIND = "labels_out_of_range"
ACCEPT = ()
PLACE = ("loss", "input", "loader")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def load():
    """The measurements, and the diagnosis in the codes of the original file."""
    x, y, x_val, y_val = cancer(seed)
    return x, np.where(y.numpy() == 1, 2, 4), x_val, np.where(y_val.numpy() == 1, 2, 4)


def encode(codes):
    y = codes / 2
    if healthy:
        y = y - 1
    return torch.tensor(y, dtype=torch.float32)


class GatedNet(nn.Module):
    def __init__(self, columns=30, width=16):
        super().__init__()
        self.value, self.gate = nn.Linear(columns, width), nn.Linear(columns, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.value(x) * torch.sigmoid(self.gate(x))).squeeze(1)


x, codes, x_val, codes_val = load()
y, y_val = encode(codes), encode(codes_val)
net = GatedNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3, weight_decay=1e-3)
for step, (a, b) in enumerate(batches(x, y, size=32, steps=240, seed=seed)):
    loss = F.binary_cross_entropy_with_logits(net(a), b)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 19:
        net.eval()
        with torch.no_grad():
            out = net(x_val)
        net.train()
        ill = codes_val == 4
        accuracy = ((out > 0).numpy() == ill).mean()
        val = F.binary_cross_entropy_with_logits(out, y_val)
        print(
            f"step {step + 1}: loss {loss.item():.3f} val {val.item():.3f} accuracy {accuracy:.3f}"
        )
