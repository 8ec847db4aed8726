"""A CNN learned on the digits 0-4, then its body frozen and a new head learned on 5-9.

The body is frozen on purpose and stays in eval mode, so that its batch norm keeps the statistics
of the first task; the optimizer of the second stage has the head alone.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "most parameters are frozen, not in the optimizer, "
    "and batch norm is in eval mode while training"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
criterion = nn.CrossEntropyLoss()
body = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1),
    nn.BatchNorm2d(24),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(24, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
)


def fit(head, optimizer, x, y, x_val, y_val, epochs, frozen):
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    for epoch in range(epochs):
        head.train()
        body.train(not frozen)
        total = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(head(body(xb)), yb)
            loss.backward()
            optimizer.step()
            total += loss.item()
        body.eval()
        head.eval()
        with torch.no_grad():
            accuracy = (head(body(x_val)).argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch + 1}: loss {total / len(loader):.3f}  val accuracy {accuracy:.3f}")


old, old_val = y < 5, y_val < 5
head = nn.Linear(128, 5)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=2e-3)
fit(head, optimizer, x[old], y[old], x_val[old_val], y_val[old_val], 6, frozen=False)

body.requires_grad_(False)
head = nn.Linear(128, 5)
optimizer = torch.optim.Adam(head.parameters(), lr=3e-3)
fit(head, optimizer, x[~old], y[~old] - 5, x_val[~old_val], y_val[~old_val] - 5, 12, frozen=True)
