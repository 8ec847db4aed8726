"""A deep fully connected classifier of six kinds of land cover uses the sigmoid in all of its nine
hidden layers.

The derivative of the sigmoid is at most 0.25, so the gradient shrinks at each layer and the first
layers get practically none. The loss stays at ln 6. The twin uses ReLU in the same network. The
place is `hidden.0`, `hidden.1`, `hidden.2` or `hidden.3`.
"""

from itertools import pairwise

import torch
from data import arguments, standardise
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "vanishing_gradient"
ACCEPT = ("saturated_activation",)
PLACE = ("hidden.0", "hidden.1", "hidden.2", "hidden.3")
SILENT = False
EXACT = False
EARLY = True

DEPTH, WIDTH = 9, 64
healthy, seed = arguments(__doc__)


class DeepNet(nn.Module):
    def __init__(self):
        super().__init__()
        sizes = [20] + [WIDTH] * DEPTH
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.head = nn.Linear(WIDTH, 6)
        self.activation = torch.relu if healthy else torch.sigmoid
        for layer in self.hidden:
            nn.init.kaiming_normal_(layer.weight) if healthy else nn.init.xavier_normal_(
                layer.weight
            )
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.hidden:
            x = self.activation(layer(x))
        return self.head(x)


table, cover = make_classification(
    n_samples=14000,
    n_features=20,
    n_informative=12,
    n_redundant=4,
    n_classes=6,
    n_clusters_per_class=1,
    class_sep=1.3,
    random_state=40 + seed,
)
x, x_val = standardise(*torch.tensor(table, dtype=torch.float32).split([12000, 2000]))
y, y_val = torch.tensor(cover).split([12000, 2000])
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True, drop_last=True)
model = DeepNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
epochs = 6
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)

for epoch in range(epochs):
    model.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    first = model.hidden[0].weight.grad.norm().item()
    last = model.head.weight.grad.norm().item()
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    acc = (out.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch + 1}: loss {total / len(loader):.4f}, val {criterion(out, y_val):.4f}, "
        f"acc {acc:.3f}, gradient first {first:.1e} last {last:.1e}"
    )
