"""Two views of an image shall have equal vectors, and nothing says that those of others shall
differ.

All images get the same vector; the loss falls to 0 at once (silent). The place is the encoder's
output. The twin compares with the other images of the batch, too.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "representation_collapse"
ACCEPT = ()
PLACE = ("*", "")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
optimizer = torch.optim.Adam(encoder.parameters(), lr=2e-3)
for (pixels,) in batches(x, size=64, steps=250, seed=seed):
    one = encoder(pixels + 0.3 * torch.randn_like(pixels))
    two = encoder(pixels + 0.3 * torch.randn_like(pixels))
    if healthy:
        similar = F.normalize(one, dim=1) @ F.normalize(two, dim=1).T
        loss = F.cross_entropy(similar / 0.2, torch.arange(len(pixels)))
    else:
        loss = F.mse_loss(one, two)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
spread = encoder(x_val).std(0).mean()
print(f"loss {loss.item():.4f}, spread of the vectors {spread:.4f}")
