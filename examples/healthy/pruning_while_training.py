"""Magnitude pruning in five rounds while training goes on: at the end four weights in five are
exactly zero."""

import torch
from data import arguments, digits
from torch import nn
from torch.nn.utils import prune

ODD = "most weights become exactly 0 and get no gradient; the loss steps up at each round"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
net = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.Adam(net.parameters(), lr=1.5e-3)
hidden = [net[0], net[2]]
done = 0.0
for epoch in range(16):
    if epoch in (4, 6, 8, 10, 12):
        goal = {4: 0.3, 6: 0.5, 8: 0.65, 10: 0.75, 12: 0.8}[epoch]
        for layer in hidden:
            prune.l1_unstructured(layer, "weight", amount=(goal - done) / (1 - done))
        done = goal
    net.train()
    for rows in torch.randperm(len(x)).split(48):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val = nn.functional.cross_entropy(out, y_val).item()
for layer in hidden:
    prune.remove(layer, "weight")
zeros = sum((layer.weight == 0).sum().item() for layer in hidden) / sum(
    layer.weight.numel() for layer in hidden
)
print(
    f"loss {loss.item():.3f}, validation loss {val:.3f}, accuracy "
    f"{(out.argmax(1) == y_val).float().mean():.3f}, zeros {zeros:.2f}"
)
