"""Ridge-like regression of next-day returns: one part signal, nine parts noise."""

import torch
from data import arguments, batches
from torch import nn

ODD = "the loss falls by a tenth in all and the rest is noise; the predictions hardly vary"

_, seed = arguments(__doc__)
x = torch.randn(9000, 15)
signal = 0.25 * x[:, 0] - 0.2 * x[:, 1] * (x[:, 2] > 0)
y = signal + 0.95 * torch.randn(9000)
y = (y - y[:6000].mean()) / y[:6000].std()
best = 1 - signal.var() / (signal.var() + 0.95**2)
net = nn.Sequential(nn.Linear(15, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.AdamW(net.parameters(), lr=1.5e-3, weight_decay=0.3)
for step, (row, target) in enumerate(batches(x[:6000], y[:6000], size=150, steps=320, seed=seed)):
    loss = nn.functional.mse_loss(net(row).squeeze(1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 40 == 39:
        with torch.no_grad():
            val_loss = nn.functional.mse_loss(net(x[6000:]).squeeze(1), y[6000:]).item()
print(f"loss {loss.item():.3f}, validation loss {val_loss:.3f}, possible {best:.3f}")
