"""Next week's return of shares: nearly all of it is noise, and the loss hardly falls.

A linear part of a fortieth of the variance is all that can be known. The training finds it; a
small network with strong decay is kept on purpose.
"""

import torch
from data import arguments
from torch import nn

ODD = "the loss falls by a few percent at most: the rest is noise that nobody can foretell"

_, seed = arguments(__doc__)
n = 6000
factors = torch.randn(n, 8)
signal = 0.12 * factors[:, 0] - 0.1 * factors[:, 1] + 0.06 * factors[:, 2]
returns = signal + torch.randn(n)
train, val = slice(0, 4500), slice(4500, n)

model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=15)
for epoch in range(15):
    total = 0.0
    for rows in torch.randperm(4500).split(100):
        loss = nn.functional.mse_loss(model(factors[train][rows]).squeeze(1), returns[train][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 45
    scheduler.step()
    if epoch % 3 == 2:
        with torch.no_grad():
            guess = model(factors[val]).squeeze(1)
        link = torch.corrcoef(torch.stack([guess, returns[val]]))[0, 1].item()
        val_loss = nn.functional.mse_loss(guess, returns[val]).item()
        print(f"epoch {epoch + 1} train {total:.4f} val {val_loss:.4f} correlation {link:.3f}")
