"""A CNN estimates the weight of fish from silhouettes; the target is left in grams, 100 to 4,000.

Pictures are normalised, the weights are not: the outputs begin near 0 and the squared error begins
in the millions. Adam spends the whole training on the way up; the error stays four times as large.
The place is the target (the loss) and the last layer of `regressor`.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("loss", "labels", "regressor", "regressor.*", "target")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class Config:
    train_size, valid_size = 1000, 300
    batch_size, epochs = 25, 8
    lr = 4e-4


def photograph(n, rng):
    """Silhouettes of 20 x 32 pixels; the weight grows with length, height squared and belly."""
    y, x = np.mgrid[0:20, 0:32]
    length, ratio = rng.uniform(6, 14, n), rng.uniform(0.25, 0.55, n)
    height = length * ratio
    middle = np.stack([rng.uniform(14, 18, n), rng.uniform(8, 12, n)], 1)
    u = (x - middle[:, :1, None]) / length[:, None, None]
    v = (y - middle[:, 1:, None]) / height[:, None, None]
    body = (u**2 + v**2 < 1) | ((u > 0.8) & (u < 1.1) & (abs(v) < 0.8 * (u - 0.5) * 2))
    images = body + rng.normal(0, 0.2, (n, 20, 32))
    grams = 100 + 5.5 * length * height**2 * rng.normal(1, 0.04, n)
    return ((images - 0.3) / 0.5)[:, None], grams


class FishNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.regressor = nn.Sequential(nn.Linear(16 * 5 * 8, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, x):
        return self.regressor(self.features(x).flatten(1))


def make_loader(images, target, shuffle):
    tensors = (torch.tensor(a, dtype=torch.float32) for a in (images, target[:, None]))
    return DataLoader(TensorDataset(*tensors), Config.batch_size, shuffle=shuffle)


rng = np.random.default_rng(seed)
train_images, train_grams = photograph(Config.train_size, rng)
valid_images, valid_grams = photograph(Config.valid_size, rng)
offset, scale = (train_grams.mean(), train_grams.std()) if healthy else (0.0, 1.0)
train_loader = make_loader(train_images, (train_grams - offset) / scale, True)
valid_loader = make_loader(valid_images, (valid_grams - offset) / scale, False)

model = FishNet()
optimizer = torch.optim.Adam(model.parameters(), lr=Config.lr)
loss_fn = nn.MSELoss()
for epoch in range(Config.epochs):
    model.train()
    losses = []
    for images, target in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(images), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        errors = torch.cat([model(images) - target for images, target in valid_loader]) * scale
    print(
        f"epoch {epoch + 1}: loss {np.mean(losses):.4g}, valid MAE {errors.abs().mean():.0f} g, "
        f"R2 {1 - errors.pow(2).mean().item() / valid_grams.var():.3f}"
    )
