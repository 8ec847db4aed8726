"""A trained network is adapted to turned images by low-rank additions, which start at 0."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "most parameters are frozen, half of the others are 0 at the start"


class LoRALinear(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + (x @ self.a.T) @ self.b.T


def train(model, x, y, steps, lr):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=lr)
    for rows, labels in batches(x, y, size=32, steps=steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(rows), labels)
        loss.backward()
        optimizer.step()
    return loss.item()


_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
train(model, x, y, 150, 2e-3)
turned = x.view(-1, 8, 8).transpose(1, 2).flip(2).reshape(-1, 64)
for i in (0, 2, 4):
    model[i] = LoRALinear(model[i])
print(f"adapted: loss {train(model, turned, y, 250, 5e-3):.3f}")
