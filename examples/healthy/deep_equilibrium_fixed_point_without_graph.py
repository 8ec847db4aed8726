"""Deep equilibrium net: the fixed point is found without a graph, then one step with one."""

import torch
import torch.nn.functional as F
from data import arguments, wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the same cell runs twenty times under no_grad() in training mode, and once with a gradient"

_, seed = arguments(__doc__)


class Cell(nn.Module):
    def __init__(self, n_in, n):
        super().__init__()
        self.inject = nn.Linear(n_in, n)
        self.recur = nn.utils.parametrizations.spectral_norm(nn.Linear(n, n, bias=False))

    def forward(self, z, x):
        return torch.tanh(0.7 * self.recur(z) + self.inject(x))


class DEQ(nn.Module):
    def __init__(self, n_in, n, classes):
        super().__init__()
        self.cell, self.n = Cell(n_in, n), n
        self.drop = nn.Dropout(0.2)
        self.head = nn.Linear(n, classes)

    def forward(self, x):
        z = torch.zeros(len(x), self.n)
        with torch.no_grad():
            for _ in range(20):
                z = self.cell(z, x)
        z = self.cell(z, x)  # phantom gradient
        return self.head(self.drop(z))


x, y, x_val, y_val = wine(seed)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = DEQ(x.shape[1], 24, 3)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
for epoch in range(16):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(xb) / len(x)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    if epoch % 3 == 0:
        print(
            f"epoch {epoch}: train {total:.3f} val {F.cross_entropy(out, y_val):.3f} "
            f"acc {(out.argmax(1) == y_val).float().mean():.3f}"
        )
