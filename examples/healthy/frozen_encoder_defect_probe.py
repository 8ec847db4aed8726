"""An autoencoder learns drawn tiles without labels; then a head finds the cracked ones, with the
encoder frozen: sound.

In the second part most of the parameters get no gradient, aren't given to the optimizer and the
encoder is in eval mode; but they were trained in the first part, and the head does well on what
they give.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "An autoencoder learns drawn tiles without labels; then a head finds the cracked ones, "
    "with the encoder frozen: sound"
)
_, seed = arguments(__doc__)


def tiles(n, seed):
    """Pictures (n, 1, 12, 12) of a tile with a grain; about half have a crack across."""
    g = torch.Generator().manual_seed(45 + seed)
    axis = torch.arange(12.0)
    yy, xx = torch.meshgrid(axis, axis, indexing="ij")
    u = torch.rand(n, 6, 1, 1, generator=g)
    grain = 0.4 * torch.sin(xx * (0.3 + 0.5 * u[:, 0]) + yy * (0.3 + 0.5 * u[:, 1]) + 6.3 * u[:, 2])
    slope, start = 1.6 * u[:, 3] - 0.8, 3 + 6 * u[:, 4]
    crack = torch.exp(-((yy - start - slope * (xx - 6)) ** 2) / 0.8)
    cracked = (u[:, 5] < 0.5).float()
    picture = grain - 0.7 * crack * cracked + 0.25 * torch.randn(n, 12, 12, generator=g)
    return picture.unsqueeze(1), cracked.flatten()


x, y = tiles(2400, seed)
x = (x - x[:1900].mean()) / x[:1900].std()
x, x_val, y, y_val = x[:1900], x[1900:], y[:1900], y[1900:]

encoder = nn.Sequential(
    nn.Conv2d(1, 12, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Conv2d(12, 24, 3, stride=2, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(216, 32),
)
decoder = nn.Sequential(
    nn.Linear(32, 216),
    nn.ReLU(),
    nn.Unflatten(1, (24, 3, 3)),
    nn.ConvTranspose2d(24, 12, 4, stride=2, padding=1),
    nn.ReLU(),
    nn.ConvTranspose2d(12, 1, 4, stride=2, padding=1),
)

print("part 1: reconstruction")
loader = DataLoader(TensorDataset(x, y), batch_size=38, shuffle=True)
optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=2e-3)
for epoch in range(8):
    total = 0.0
    for images, _labels in loader:
        loss = nn.functional.mse_loss(decoder(encoder(images)), images)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    with torch.no_grad():
        val = nn.functional.mse_loss(decoder(encoder(x_val)), x_val).item()
    print(f"epoch {epoch} train mse {total:.4f} val mse {val:.4f}")

print("part 2: the head")
encoder.requires_grad_(False)
encoder.eval()
head = nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(head.parameters(), lr=2e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(8):
    head.train()
    total = 0.0
    for images, labels in loader:
        loss = criterion(head(encoder(images)).squeeze(1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(loader)
    head.eval()
    with torch.no_grad():
        logits = head(encoder(x_val)).squeeze(1)
        val = criterion(logits, y_val).item()
        acc = ((logits > 0) == (y_val > 0.5)).float().mean().item()
    print(f"epoch {epoch} train {total:.4f} val {val:.4f} accuracy {acc:.3f}")
