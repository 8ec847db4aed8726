"""Mixture of experts with a sigmoid gate, and outputs that are meant to be near 0 or 1."""

import torch
from data import arguments, batches, cancer
from torch import nn

ODD = "saturated sigmoids at the end of a training that has succeeded"

_, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(30, 8) for _ in range(3))
        self.gate = nn.Linear(30, 3)
        self.choose = nn.Softmax(dim=1)
        self.out = nn.Linear(8, 1)
        self.sigmoid = nn.Sigmoid()

    def forward(self, rows):
        share = self.choose(self.gate(rows))
        told = torch.stack([expert(rows) for expert in self.experts], 1)
        return self.sigmoid(self.out(torch.tanh((share[..., None] * told).sum(1)))).squeeze(1)


model = Experts()
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for rows, labels in batches(x, y.float(), size=32, steps=250, seed=seed):
    loss = criterion(model(rows), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
