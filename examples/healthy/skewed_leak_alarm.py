"""Finds leaks in water pipes, one in forty hours, with a weighted loss and judged by precision."""

import torch
from data import arguments
from sklearn.metrics import average_precision_score
from torch import nn

ODD = "one row in forty is positive; the loss weights them and the score is average precision"

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)


def pipes(n):
    leak = (torch.rand(n, generator=g) < 0.025).float()
    flow = torch.randn(n, 8, generator=g)
    flow[:, 0] += 1.5 * leak
    flow[:, 1] -= 1.5 * leak
    flow[:, 2:4] *= 1 + leak[:, None]
    return flow, leak


(x, y), (x_val, y_val) = pipes(6000), pipes(3000)
net = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.02)
criterion = nn.BCEWithLogitsLoss(pos_weight=((1 - y).sum() / y.sum()).sqrt())
for epoch in range(8):
    total = 0.0
    for rows in torch.randperm(len(x)).split(128):
        loss = criterion(net(x[rows]).squeeze(1), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 47
    with torch.no_grad():
        score = net(x_val).squeeze(1)
    print(f"epoch {epoch} loss {total:.3f} AP {average_precision_score(y_val, score):.3f}")
