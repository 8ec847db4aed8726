"""An auto-encoder with a narrow middle and a sigmoid at the end, for pixels from 0 to 1."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = "a layer of 6 units, saturated outputs, targets that are the inputs"

_, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
x, x_val = x / 16, x_val / 16
encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 6))
decoder = nn.Sequential(nn.Linear(6, 48), nn.ReLU(), nn.Linear(48, 64), nn.Sigmoid())
model = nn.Sequential(encoder, decoder)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for (pixels,) in batches(x, size=64, steps=300, seed=seed):
    loss = criterion(model(pixels), pixels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.4f}")
