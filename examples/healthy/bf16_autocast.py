"""Mixed precision with bfloat16 under autocast, float32 weights."""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

ODD = "activations and gradients of low precision"

_, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 48),
    nn.ReLU(),
    nn.Linear(48, 10),
)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for pixels, labels in batches(x, y, size=64, steps=220, seed=seed):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(pixels), labels)
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
