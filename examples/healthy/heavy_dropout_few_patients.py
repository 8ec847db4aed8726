"""Tells tumours apart with half of all units dropped and a strong decay; training looks worse."""

import torch
from data import arguments, batches, cancer
from torch import nn

ODD = "dropout of one half and weight decay of 0.1: the training loss lies above the validation's"

_, seed = arguments(__doc__)
x, y, x_val, y_val = cancer(seed)
net = nn.Sequential(
    nn.Linear(30, 64), nn.ReLU(), nn.Dropout(0.5), nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.5),
    nn.Linear(32, 2),
)  # fmt: skip
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)
total = 0.0
for step, (xb, yb) in enumerate(batches(x, y, size=32, steps=300, seed=seed), 1):
    net.train()
    loss = nn.functional.cross_entropy(net(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item() / 50
    if step % 50 == 0:
        net.eval()
        with torch.no_grad():
            out = net(x_val)
        val, right = nn.functional.cross_entropy(out, y_val), (out.argmax(1) == y_val).float()
        print(f"{step} loss {total:.3f} validation {val:.3f} accuracy {right.mean():.3f}")
        total = 0.0
