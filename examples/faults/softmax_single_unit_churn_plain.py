"""A churn model with one output unit uses softmax on that unit, with binary cross-entropy.

Softmax over a single value is always 1, whatever the network computes, and its gradient is zero, so
nothing is learned at all and everybody is predicted to leave. The twin uses a sigmoid. The place is
`activation`, `out` or the loss.
"""

import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("activation", "out", "loss*")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def customers(n):
    months = torch.distributions.Exponential(1 / 24.0).sample((n,))
    fee = 20 + 60 * torch.rand(n)
    calls = torch.poisson(torch.full((n,), 1.5))
    age = 18 + 60 * torch.rand(n)
    usage = torch.randn(n) * 10 + fee / 2
    risk = 0.9 * calls - 0.06 * months + 0.05 * (fee - 50) - 1.5 * ((usage - fee / 2) / 10).abs()
    leaves = torch.rand(n) < torch.sigmoid(2 * (risk + 0.5))
    return torch.stack([months, fee, calls, age, usage], 1), leaves.float()


class ChurnNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(5, 32)
        self.fc2 = nn.Linear(32, 16)
        self.out = nn.Linear(16, 1)
        self.activation = nn.Sigmoid() if healthy else nn.Softmax(dim=1)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = torch.relu(self.fc2(x))
        return self.activation(self.out(x)).squeeze(1)


x, y = customers(4000)
x_val, y_val = customers(1000)
x, x_val = standardise(x, x_val)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
net = ChurnNet()
bce = nn.BCELoss()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)

for epoch in range(10):
    net.train()
    total = 0.0
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = bce(net(xb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    net.eval()
    with torch.no_grad():
        p = net(x_val)
        acc = ((p > 0.5) == (y_val > 0.5)).float().mean().item()
    print(
        f"epoch {epoch + 1}: loss {total / len(loader):.4f}, val {bce(p, y_val):.4f}, acc {acc:.3f}"
    )
