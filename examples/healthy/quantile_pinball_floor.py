"""Three quantiles of house prices by the pinball loss, with growing batches."""

import torch
from data import arguments, houses
from torch import nn

ODD = (
    "three outputs for one target (broadcast on purpose); a loss that cannot go to 0; the "
    "batch size grows"
)

_, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, n=3000)
levels = torch.tensor([0.1, 0.5, 0.9])
net = nn.Sequential(nn.Linear(6, 48), nn.ELU(), nn.Linear(48, 48), nn.ELU(), nn.Linear(48, 3))
optimizer = torch.optim.NAdam(net.parameters(), lr=2e-3)


def pinball(guess, target):
    miss = target.unsqueeze(1) - guess
    return torch.maximum(levels * miss, (levels - 1) * miss).mean()


for epoch in range(16):
    for rows in torch.randperm(len(x)).split(32 if epoch < 8 else 128):
        loss = pinball(net(x[rows]), y[rows])
        net.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = pinball(net(x_val), y_val).item()
with torch.no_grad():
    share = (y_val.unsqueeze(1) < net(x_val)).float().mean(0)
print(
    f"loss {loss.item():.4f}, validation loss {val_loss:.4f}, "
    f"below: {[round(s, 2) for s in share.tolist()]}"
)
