"""Tells tissue types on microscope tiles, and keeps every batch's outputs with their graphs.

For a report, the batch is judged once more after the step, and outputs and losses are put in lists.
They still hang on the graphs that made them, so the activations of all batches stay in memory, and
the run is killed when the data is larger. The place is the loop.
The twin computes what it keeps without a graph.
"""

import resource

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def tissue(n, g):
    y = torch.randint(0, 3, (n,), generator=g)
    coarse = torch.randn(n, 3, 24, 24, generator=g)
    smooth = nn.functional.avg_pool2d(coarse, 5, stride=1, padding=2) * 4
    middle = nn.functional.avg_pool2d(coarse, 3, stride=1, padding=1) * 2.5
    x = torch.where((y == 0)[:, None, None, None], smooth, middle)
    x = torch.where((y == 2)[:, None, None, None], coarse, x)
    return x + 0.3 * torch.randn(n, 3, 1, 1, generator=g), y


class Tiles(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.MaxPool2d(2))
        self.body = nn.Sequential(nn.Conv2d(16, 24, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(3))
        self.head = nn.Linear(24 * 9, 3)

    def forward(self, x):
        return self.head(self.body(self.stem(x)).flatten(1))


def megabytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


g = torch.Generator().manual_seed(20 + seed)
train = DataLoader(TensorDataset(*tissue(800, g)), batch_size=32, shuffle=True)
x_val, y_val = tissue(300, g)
model = Tiles()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
history = {"loss": [], "output": [], "label": []}
start = megabytes()
for epoch in range(8):
    for x, y in train:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.set_grad_enabled(not healthy):
            after = model(x)
            history["loss"].append(nn.functional.cross_entropy(after, y))
        history["output"].append(after)
        history["label"].append(y)
    with torch.no_grad():
        accuracy = (model(x_val).argmax(1) == y_val).float().mean()
    mean = float(sum(history["loss"][-25:])) / 25
    print(f"epoch {epoch} loss {mean:.3f} val {accuracy:.3f} memory +{megabytes() - start:.0f} MB")
