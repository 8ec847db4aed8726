"""A denoising auto-encoder for a table: a tenth of the cells come from other rows."""

import torch
from data import arguments, cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the target is the clean input, the loss stands at the variance of what cannot be known"

_, seed = arguments(__doc__)
x, _, x_val, _ = cancer(seed)
encoder = nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Linear(48, 8))
decoder = nn.Sequential(nn.Linear(8, 48), nn.ReLU(), nn.Linear(48, 30))
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
criterion = nn.MSELoss()


def corrupted(rows):
    swapped = torch.stack([column[torch.randperm(len(rows))] for column in rows.T], 1)
    return torch.where(torch.rand_like(rows) < 0.1, swapped, rows)


for epoch in range(20):
    for (rows,) in DataLoader(TensorDataset(x), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        loss = criterion(decoder(encoder(corrupted(rows))), rows)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        val_loss = criterion(decoder(encoder(x_val)), x_val)
print(f"loss {loss.item():.3f}, val {val_loss.item():.3f}")
