"""A single linear layer for two rings, one inside the other.

No line parts them, however long it is trained. The place is the model.
"""

import torch
from data import arguments
from sklearn.datasets import make_circles
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ("no_nonlinearity",)
PLACE = ("linear*", "net*", "")
SILENT = False
EXACT = False
EARLY = True


class LogisticRegression(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x)


class TwoLayers(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 24)
        self.out = nn.Linear(24, 2)

    def forward(self, x):
        return self.out(torch.relu(self.linear(x)))


healthy, seed = arguments(__doc__)
points, ring = make_circles(1000, noise=0.08, factor=0.5, random_state=seed)
loader = DataLoader(
    TensorDataset(torch.tensor(points).float(), torch.tensor(ring)), batch_size=50, shuffle=True
)
model = TwoLayers() if healthy else LogisticRegression()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(20):
    right = 0
    for x, y in loader:
        optimizer.zero_grad()
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        right += (out.argmax(1) == y).sum().item()
print(f"loss {loss.item():.3f}, accuracy {right / 1000:.3f}")
