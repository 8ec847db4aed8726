"""Vectors of images are divided by their length; a few scans are blank, and their length is 0.

The first blank scan makes all weights NaN. The place is the model, where it divides.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ("numerical_instability",)
PLACE = ("", "embed*", "loss*")
SILENT = False
EXACT = True
EARLY = False


class Embedder(nn.Module):
    """Unit vectors of images, to be compared with those of ten class centres."""

    def __init__(self, safe):
        super().__init__()
        self.embed1 = nn.Linear(64, 64, bias=False)
        self.embed2 = nn.Linear(64, 16, bias=False)
        self.centres = nn.Parameter(torch.randn(10, 16))
        self.safe = safe

    def forward(self, x):
        e = self.embed2(F.leaky_relu(self.embed1(x)))
        e = F.normalize(e, dim=1) if self.safe else e / e.norm(dim=1, keepdim=True)
        return 10 * e @ F.normalize(self.centres, dim=1).T


healthy, seed = arguments(__doc__)
digits = load_digits()
pixels = torch.tensor(digits.data / 16, dtype=torch.float32)
labels = torch.tensor(digits.target)
blank = torch.randperm(len(pixels))[:8]
pixels[blank] = 0.0

net = Embedder(safe=healthy)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
step = 0
for epoch in range(8):
    for rows in torch.randperm(len(pixels)).split(48):
        loss = F.cross_entropy(net(pixels[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
print(f"loss {loss.item():.3f} after {step} steps")
