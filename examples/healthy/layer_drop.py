"""Stochastic depth: each residual block is left out of half of the training steps."""

import random

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "blocks get no gradient in the steps that leave them out"


class Net(nn.Module):
    def __init__(self, blocks=4, keep=0.5):
        super().__init__()
        self.stem = nn.Linear(64, 48)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(48), nn.Linear(48, 48), nn.GELU(), nn.Linear(48, 48))
            for _ in range(blocks)
        )
        self.head = nn.Linear(48, 10)
        self.keep = keep

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            if not self.training:
                x = x + self.keep * block(x)
            elif random.random() < self.keep:
                x = x + block(x)
        return self.head(x)


_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = Net()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(5):
    model.train()
    for rows, labels in batches(x, y, size=32, steps=42, seed=epoch):
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val_loss = nn.functional.cross_entropy(model(x_val), y_val)
    print(f"epoch {epoch}: {loss.item():.3f}, val {val_loss.item():.3f}")
