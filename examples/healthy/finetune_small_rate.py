"""All of a trained network is fine-tuned on new data with SGD at 1e-4."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "tiny updates, a loss that is low from the start and falls by little"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for pixels, labels in batches(x[:700], y[:700], size=64, steps=120, seed=seed):
    loss = F.cross_entropy(model(pixels), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

new = x + 0.3 * torch.randn_like(x)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
for pixels, labels in batches(new, y, size=32, steps=320, seed=seed):
    loss = F.cross_entropy(model(pixels), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
