"""A super-resolution CNN for small pictures ends in a sigmoid, but the pictures were scaled to
-1..1, so the dark half cannot be drawn.

nn.Sigmoid was right while pictures were 0..1; after Normalize(0.5, 0.5) the ink is at 1 and paper
at -1. Paper comes out as 0 at best and the error stays high. The twin ends in tanh.
The place is the last layer.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "output_activation_range"
ACCEPT = ("saturated_activation",)
PLACE = ("final", "final.*", "model", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class SmallAndLarge(Dataset):
    def __init__(self, pictures):
        self.large = (pictures / 16 - 0.5) / 0.5
        self.small = F.avg_pool2d(self.large, 2)

    def __len__(self):
        return len(self.large)

    def __getitem__(self, i):
        return self.small[i], self.large[i]


class SuperResolution(nn.Module):
    """ESPCN: convolutions on the small picture, then pixels are moved from channels to places."""

    def __init__(self, channels=24):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1), nn.LeakyReLU(0.1),
            nn.Conv2d(channels, channels, 3, padding=1), nn.LeakyReLU(0.1),
            nn.Conv2d(channels, 4, 3, padding=1), nn.PixelShuffle(2),
        )  # fmt: skip
        self.final = nn.Tanh() if healthy else nn.Sigmoid()

    def forward(self, x):
        doubled = F.interpolate(x, scale_factor=2, mode="bilinear")
        return self.final(self.body(x) + 2 * doubled)


def mean_error(model, loader):
    model.eval()
    with torch.no_grad():
        return sum(F.mse_loss(model(s), b).item() * len(s) for s, b in loader) / len(loader.dataset)


x, _, x_val, _ = images(seed, raw=True)
train_loader = DataLoader(SmallAndLarge(x), batch_size=32, shuffle=True)
val_loader = DataLoader(SmallAndLarge(x_val), batch_size=225)
doubled = sum(
    F.mse_loss(F.interpolate(s, scale_factor=2, mode="bilinear"), b).item() * len(s)
    for s, b in val_loader
) / len(x_val)
print(f"bilinear doubling: val mse {doubled:.4f}")

model = SuperResolution()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 11):
    model.train()
    total = 0.0
    for small, large in train_loader:
        loss = F.mse_loss(model(small), large)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(
        f"epoch {epoch}: train mse {total / len(train_loader):.4f}, "
        f"val mse {mean_error(model, val_loader):.4f}"
    )
