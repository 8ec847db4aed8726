"""A mixture of experts with top-1 routing and a balancing loss, on four regimes of a function."""

import torch
from data import arguments, batches
from torch import nn

ODD = (
    "experts chosen by no row of a batch get no gradient; routing is not differentiable; an "
    "extra loss of 1"
)

_, seed = arguments(__doc__)


class SparseExperts(nn.Module):
    def __init__(self, experts=6, hidden=32):
        super().__init__()
        self.router = nn.Linear(4, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 1))
            for _ in range(experts)
        )

    def forward(self, x):
        share = self.router(x).softmax(1)
        weight, chosen = share.max(1)
        out = x.new_zeros(len(x))
        for k, expert in enumerate(self.experts):
            rows = (chosen == k).nonzero().squeeze(1)
            if len(rows):
                out = out.index_add(0, rows, weight[rows] * expert(x[rows]).squeeze(1))
        load = nn.functional.one_hot(chosen, len(self.experts)).float().mean(0)
        return out, len(self.experts) * (load * share.mean(0)).sum()


def regimes(n):
    x = torch.randn(n, 4)
    a, b = torch.rand(2, n) > 0.5
    x[:, 0] = 0.3 * x[:, 0] + a.float() * 2 - 1
    x[:, 1] = 0.3 * x[:, 1] + b.float() * 2 - 1
    y = torch.where(
        a, torch.where(b, x[:, 2], -x[:, 3]), torch.where(b, x[:, 3] ** 2 - 1, x[:, 2] + x[:, 3])
    )
    return x, y + 0.1 * torch.randn(n)


x, y = regimes(3000)
x_val, y_val = regimes(800)
y_val, y = (y_val - y.mean()) / y.std(), (y - y.mean()) / y.std()
model = SparseExperts()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 900)
for row, target in batches(x, y, size=50, steps=900, seed=seed):
    guess, balance = model(row)
    loss = (guess - target).square().mean() + 0.01 * balance
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    schedule.step()
with torch.no_grad():
    val_loss = (model(x_val)[0] - y_val).square().mean()
print(f"loss {loss.item():.3f}, validation error {val_loss:.3f}")
