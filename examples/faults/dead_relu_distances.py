"""Similarities to learned prototypes are minus distances, and a ReLU comes after them: all are 0.

A margin before the ReLU was forgotten; nothing depends on the input. The place is the ReLU.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "dead_relu"
ACCEPT = ()
PLACE = ("prototypes*", "act", "")
SILENT = False
EXACT = False
EARLY = True


class Prototypes(nn.Module):
    def __init__(self, n, dim, margin):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(n, dim) * 0.5)
        self.margin = margin

    def forward(self, x):
        return self.margin - torch.cdist(x, self.centres)


class PrototypeNet(nn.Module):
    def __init__(self, margin):
        super().__init__()
        self.embed = nn.Linear(64, 12)
        self.prototypes = Prototypes(60, 12, margin)
        self.act = nn.ReLU()
        self.out = nn.Linear(60, 10)

    def forward(self, x):
        return self.out(self.act(self.prototypes(self.embed(x))))


healthy, seed = arguments(__doc__)
digits = load_digits()
x = torch.tensor((digits.data - 4.9) / 6.0, dtype=torch.float32)
loader = DataLoader(TensorDataset(x, torch.tensor(digits.target)), batch_size=45, shuffle=True)
model = PrototypeNet(margin=3.0 if healthy else 0.0)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(7):
    correct = 0
    for rows, labels in loader:
        optimizer.zero_grad()
        out = model(rows)
        loss = nn.functional.cross_entropy(out, labels)
        loss.backward()
        optimizer.step()
        correct += (out.argmax(1) == labels).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {correct / len(x):.3f}")
