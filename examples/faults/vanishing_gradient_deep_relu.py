"""Eighteen layers with ReLU, one after another, with the weights that nn.Linear starts with.

Each layer makes signals smaller, and the loss stays at ln 10. The place are the layers.
"""

import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init", "dead_relu")
PLACE = ("hidden.*", "first", "")
SILENT = False
EXACT = False
EARLY = True


class DeepMLP(nn.Module):
    def __init__(self, depth, skip):
        super().__init__()
        self.first = nn.Linear(64, 40)
        self.hidden = nn.ModuleList([nn.Linear(40, 40) for _ in range(depth)])
        self.last = nn.Linear(40, 10)
        self.skip = skip

    def forward(self, x):
        x = torch.relu(self.first(x))
        for layer in self.hidden:
            y = torch.relu(layer(x))
            x = x + y if self.skip else y
        return self.last(x)


healthy, seed = arguments(__doc__)
digits = load_digits()
x = torch.tensor(digits.data / 16).float()
y = torch.tensor(digits.target)
model = DeepMLP(depth=16, skip=healthy)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    for rows in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        loss = criterion(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}")
