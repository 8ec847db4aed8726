"""Gain from a hearing aid by 60 questions; a wide network learns 300 people by heart.

There are 300 people and 60 answers, and the network has two layers of 256 units, no decay, no
dropout, and 80 epochs, because the training loss was still falling.
The place is the whole model. The twin is a small network with dropout and decay that stops early.
"""

import copy

import torch
from data import arguments
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = (", ",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def people(n, g):
    traits = torch.randn(n, 4, generator=g)
    loading = torch.randn(4, 60, generator=torch.Generator().manual_seed(8))
    answers = traits @ loading / 2 + 1.5 * torch.randn(n, 60, generator=g)
    gain = traits[:, 0] - 0.7 * traits[:, 1] + 1.0 * torch.randn(n, generator=g)
    return answers / 1.8, gain / 1.6


g = torch.Generator().manual_seed(seed)
x, y = people(300, g)
x_val, y_val = people(400, g)
if healthy:
    net = nn.Sequential(nn.Linear(60, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.1)
else:
    net = nn.Sequential(
        nn.Linear(60, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1)
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=0.0)
patience = 8 if healthy else 1000
best, best_epoch, best_net = float("inf"), 0, net
for epoch in range(80):
    net.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(20):
        loss = nn.functional.mse_loss(net(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(x)
    net.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(net(x_val).squeeze(1), y_val).item()
    if val < best:
        best, best_epoch, best_net = val, epoch, copy.deepcopy(net)
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1}: loss {total:.3f} validation {val:.3f}")
    if epoch - best_epoch >= patience:
        break
print(f"stopped after epoch {epoch}: last {val:.3f}, best {best:.3f}")
