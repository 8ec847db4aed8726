"""A network for odd and even digits by low-rank adapters on the frozen layers of one pretrained
here on the ten digits.

It looks odd as most of the parameters are frozen, each adapter is two affine layers with nothing
between them, and one of the two starts at zero: all is as intended, and the frozen layers come
from a checkpoint that was really trained (on other rows).
"""

import os
import tempfile

import torch
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "A network for odd and even digits by low-rank adapters on the frozen layers of one "
    "pretrained here on the ten digits"
)
_, seed = arguments(__doc__)


class Adapted(nn.Module):
    def __init__(self, layer, rank=4):
        super().__init__()
        self.layer = layer
        for p in layer.parameters():
            p.requires_grad_(False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


def network(outputs):
    return nn.Sequential(
        nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64), nn.ReLU(), nn.Linear(64, outputs)
    )


def fit(model, x, y, x_val, y_val, epochs, lr):
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=lr, weight_decay=1e-3)
    for epoch in range(epochs):
        model.train()
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
            loss = nn.functional.cross_entropy(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            scores = model(x_val)
            val = nn.functional.cross_entropy(scores, y_val).item()
            accuracy = (scores.argmax(1) == y_val).float().mean().item()
        print(
            f"epoch {epoch} loss {loss.item():.3f} validation loss {val:.3f} accuracy {accuracy:.3f}"  # noqa: E501
        )


x, y, x_val, y_val = digits(seed)
third = len(x) // 3
base = network(10)
fit(base, x[:third], y[:third], x_val, y_val, epochs=12, lr=1e-3)
path = os.path.join(tempfile.mkdtemp(), "base.pt")
torch.save(base.state_dict(), path)

model = network(10)
model.load_state_dict(torch.load(path))
os.remove(path)
model = nn.Sequential(Adapted(model[0]), nn.ReLU(), Adapted(model[2]), nn.ReLU(), nn.Linear(64, 2))
print("adapters")
fit(model, x[third:], y[third:] % 2, x_val, y_val % 2, epochs=14, lr=1.5e-3)
