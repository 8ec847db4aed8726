"""Landmarks in the coordinates of `grid_sample`, -1 to 1, by a net that ends in a sigmoid, since
"the coordinates are normalised".

Landmarks left of the middle or above it cannot be said; they come out at 0. The loss falls to a
plateau. The place is the head.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "output_activation_range"
ACCEPT = ()
PLACE = ("head*", "regressor*", "loss*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
SIZE = 16


def faces(n, g):
    """A dark disc with two eyes and a mouth; where the eyes and the mouth are, as (x, y) thrice."""
    centre = torch.empty(n, 1, 2).uniform_(-0.45, 0.45, generator=g)
    scale = torch.empty(n, 1, 1).uniform_(0.7, 1.1, generator=g)
    turn = 0.3 * torch.randn(n, generator=g)
    shape = torch.tensor([[-0.25, -0.2], [0.25, -0.2], [0.0, 0.3]])
    c, s = turn.cos(), turn.sin()
    rotation = torch.stack([torch.stack([c, -s], 1), torch.stack([s, c], 1)], 1)
    points = centre + scale * (shape @ rotation.transpose(1, 2))
    line = torch.linspace(-1, 1, SIZE)
    pixels = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1).view(1, -1, 1, 2)
    distance = (pixels - points[:, None]).pow(2).sum(3)
    image = (-distance / 0.02).exp() @ torch.tensor([1.0, 1.0, -1.0])
    disc = (pixels[:, :, 0] - centre).norm(dim=2) < 0.5 * scale[:, 0]
    image = image + 0.3 * disc + 0.08 * torch.randn(n, SIZE * SIZE, generator=g)
    return image.view(n, 1, SIZE, SIZE), points.flatten(1)


class LandmarkNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.regressor = nn.Sequential(nn.Linear(24 * 16, 64), nn.ReLU(), nn.Linear(64, 6))
        self.head = nn.Tanh() if healthy else nn.Sigmoid()

    def forward(self, image):
        return self.head(self.regressor(self.features(image)))


g = torch.Generator().manual_seed(160 + seed)
(x, y), (x_val, y_val) = faces(1200, g), faces(300, g)
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std
model = LandmarkNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
mse = nn.MSELoss()
for epoch in range(11):
    model.train()
    total = 0.0
    for image, points in DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True):
        loss = mse(model(image), points)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(image)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    error = (out - y_val).view(-1, 3, 2).norm(dim=2).mean() * SIZE / 2
    print(f"{epoch} train {total / len(x):.4f} val {mse(out, y_val):.4f} error {error:.2f} pixels")
