"""Wine with cosine restarts: the rate jumps up every 40 steps, and four snapshots vote."""

import copy

import torch
from data import arguments, batches, wine
from torch import nn

ODD = "the rate falls to nothing and jumps back, four times; the loss may jump with it"

_, seed = arguments(__doc__)
x, y, x_val, y_val = wine(seed)
model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=40, eta_min=1e-4)
snapshots = []
for step, (xb, yb) in enumerate(batches(x, y, size=32, steps=160, seed=seed), start=1):
    model.train()
    loss = nn.functional.cross_entropy(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    if step % 40 == 0:
        snapshots.append(copy.deepcopy(model).eval())
with torch.no_grad():
    votes = sum(m(x_val).softmax(1) for m in snapshots)
print(
    f"loss {loss.item():.3f} accuracy of the vote {(votes.argmax(1) == y_val).float().mean():.3f}"
)
