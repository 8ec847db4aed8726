"""A net gives mean and spread of a noisy curve, trained by the Gaussian negative log-likelihood.

A density may exceed one, so the loss may well be negative; here the noise is small
(0.02 to 0.2) and the net approaches the likelihood of the truth, which is printed at the end.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss is negative, and falls further"

_, seed = arguments(__doc__)


def sample(n):
    x = 2 * torch.rand(n, 1) - 1
    spread = 0.02 + 0.09 * (x + 1)
    return x, torch.sin(4 * x) * 0.8 + spread * torch.randn(n, 1), spread


x, y, _ = sample(1500)
x_val, y_val, spread_val = sample(500)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)


class MeanAndSpread(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(1, 48), nn.Tanh(), nn.Linear(48, 48), nn.Tanh())
        self.mean = nn.Linear(48, 1)
        self.log_variance = nn.Linear(48, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.log_variance(h).exp()


model = MeanAndSpread()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)
criterion = nn.GaussianNLLLoss()
for epoch in range(60):
    model.train()
    total = 0.0
    for xb, yb in loader:
        mean, variance = model(xb)
        loss = criterion(mean, yb, variance)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item()
    schedule.step()
    model.eval()
    with torch.no_grad():
        mean, variance = model(x_val)
        val = criterion(mean, y_val, variance).item()
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1} loss {total / len(loader):.4f} val {val:.4f}")
best = criterion(torch.sin(4 * x_val) * 0.8, y_val, spread_val**2).item()
print(f"best possible: {best:.4f}")
