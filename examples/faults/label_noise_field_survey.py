"""Names the crop on small satellite tiles; a third of the labels come from a survey gone wrong.

Three helpers labelled the tiles. The third one's sheet slipped out of order when it was sorted by
another column, so his labels belong to other tiles. The sheets are joined without a check. The
place is the labels of the training data.
The twin uses his sheet in its first order.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("label_misalignment", "overfit")
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
CROPS = ["maize", "rape", "orchard", "meadow", "fallow", "vineyard"]


def tiles(n, rng):
    y = rng.integers(0, len(CROPS), n)
    rows, columns = np.mgrid[0:12, 0:12]
    colour = np.array(
        [[0.2, 0.6, 0.9], [0.8, 0.8, 0.3], [0.2, 0.5, 0.7], [0.3, 0.7, 0.8], [0.6, 0.4, 0.3],
         [0.4, 0.5, 0.6]]
    )  # fmt: skip
    x = np.empty((n, 3, 12, 12))
    for i, crop in enumerate(y):
        angle, pitch = rng.uniform(0, np.pi), {0: 1.4, 2: 0.8, 5: 2.2}.get(int(crop), 0.0)
        stripes = np.sin(pitch * (np.cos(angle) * rows + np.sin(angle) * columns)) if pitch else 0
        light = rng.normal(0, 0.2)
        x[i] = colour[crop][:, None, None] + light + 0.25 * stripes
    x += rng.normal(0, 0.25, x.shape)
    return torch.tensor((x - 0.55) / 0.4, dtype=torch.float32), torch.tensor(y)


def sheet(name, n, rng):
    x, y = tiles(n, rng)
    if name == "helper_c" and not healthy:
        y = y[torch.from_numpy(rng.permutation(n))]
    return TensorDataset(x, y)


class Block(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.GroupNorm(4, outputs)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


rng = np.random.default_rng(60 + seed)
survey = ConcatDataset([sheet(name, 500, rng) for name in ("helper_a", "helper_b", "helper_c")])
loader = DataLoader(survey, batch_size=50, shuffle=True)
x_val, y_val = tiles(600, rng)
net = nn.Sequential(
    Block(3, 16), nn.MaxPool2d(2), Block(16, 32), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    nn.Linear(128, len(CROPS)),
)  # fmt: skip
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(9):
    total = hits = 0
    for x, y in loader:
        out = net(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
        hits += (out.argmax(1) == y).sum().item()
    with torch.no_grad():
        out = net(x_val)
        val, accuracy = nn.functional.cross_entropy(out, y_val), (out.argmax(1) == y_val).float()
    print(
        f"[{epoch}] train {total / 1500:.3f} ({hits / 1500:.2f})"
        f" checked tiles {val:.3f} ({accuracy.mean():.2f})"
    )
