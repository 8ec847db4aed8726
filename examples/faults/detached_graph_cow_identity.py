"""Tells cows apart by their coat; the features are made by an encoder whose output is detached.

The encoder was frozen in an earlier experiment, where `.detach()` spared memory. Now it is to be
trained, and its parameters are in the optimizer, but no gradient comes by that line.
The place is the encoder. The twin hands the features on as they are.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_graph"
ACCEPT = ("frozen_parameters",)
PLACE = ("encoder*", "encoder", "gru", "proj")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
COWS = 20


class CowId(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.BatchNorm2d(32),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.classifier = nn.Sequential(nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, COWS))

    def forward(self, image):
        features = self.encoder(image)
        if not healthy:
            features = features.detach()
        return self.classifier(features)


def coats(n, g):
    patches = torch.Generator().manual_seed(11)
    base = torch.randn(COWS, 1, 5, 5, generator=patches)
    base = nn.functional.interpolate(base, size=(20, 20), mode="bilinear").sign()
    y = torch.randint(0, COWS, (n,), generator=g)
    x = base[y]
    for axis in (2, 3):
        shift = torch.randint(-2, 3, (1,), generator=g).item()
        x = x.roll(shift, axis)
    light = 0.7 + 0.6 * torch.rand(n, 1, 1, 1, generator=g)
    return light * x + 1.0 * torch.randn(x.shape, generator=g), y


g = torch.Generator().manual_seed(seed)
parts = [coats(100, g) for _ in range(18)]
x, y = (torch.cat(part) for part in zip(*parts, strict=False))
train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=50, shuffle=True)
model = CowId()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    losses = []
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        right = (model(x[1500:]).argmax(1) == y[1500:]).float().mean().item()
    print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f} validation {right:.3f}")
