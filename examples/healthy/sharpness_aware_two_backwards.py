"""Sharpness-aware minimisation: climb a little, take the gradient there, go back, step."""

import torch
import torch.nn.functional as F
from data import arguments, batches, cancer
from torch import nn

ODD = (
    "two backward passes a step, weights changed outside the optimizer, a second loss above "
    "the first"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)


class SAM:
    def __init__(self, parameters, base, rho):
        self.parameters, self.base, self.rho = list(parameters), base, rho

    @torch.no_grad()
    def climb(self):
        norm = torch.stack([p.grad.norm() for p in self.parameters]).norm() + 1e-12
        self.moves = [p.grad * (self.rho / norm) for p in self.parameters]
        for p, move in zip(self.parameters, self.moves, strict=False):
            p.add_(move)
        self.base.zero_grad()

    @torch.no_grad()
    def step(self):
        for p, move in zip(self.parameters, self.moves, strict=False):
            p.sub_(move)
        self.base.step()
        self.base.zero_grad()


net = nn.Sequential(nn.Linear(30, 24), nn.Hardswish(), nn.Linear(24, 1))
sgd = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=2e-3)
sam = SAM(net.parameters(), sgd, rho=0.1)
for row, ill in batches(x, y.float(), size=32, steps=200, seed=seed):
    loss = F.binary_cross_entropy_with_logits(net(row).squeeze(1), ill)
    loss.backward()
    sam.climb()
    F.binary_cross_entropy_with_logits(net(row).squeeze(1), ill).backward()
    sam.step()
with torch.no_grad():
    out = net(x_val).squeeze(1)
    val_loss = F.binary_cross_entropy_with_logits(out, y_val.float())
accuracy = ((out > 0) == (y_val > 0)).float().mean()
print(f"loss {loss.item():.3f}, validation loss {val_loss:.3f}, accuracy {accuracy:.3f}")
