"""A network that gives mean and spread of a narrow target; its likelihood is a density."""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "the loss (a negative log density) passes through 0 and ends well below it"


class MeanAndSpread(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh())
        self.mean = nn.Linear(40, 1)
        self.log_variance = nn.Linear(40, 1)

    def forward(self, x):
        h = self.body(x)
        return self.mean(h), self.log_variance(h).exp()


def make_data(n):
    x = torch.rand(n, 2) * 2 - 1
    spread = 0.02 + 0.04 * x[:, 1:].abs()
    y = 0.5 * torch.sin(3 * x[:, :1]) + spread * torch.randn(n, 1)
    return x * 1.7, y


_, seed = arguments(__doc__)
loader = DataLoader(TensorDataset(*make_data(3000)), batch_size=100, shuffle=True)
x_val, y_val = make_data(800)
model = MeanAndSpread()
criterion = nn.GaussianNLLLoss(eps=1e-5)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=18)
for epoch in range(18):
    model.train()
    for x, y in loader:
        mean, variance = model(x)
        loss = criterion(mean, y, variance)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        mean, variance = model(x_val)
        val_loss = criterion(mean, y_val, variance)
        error = (mean - y_val).abs().mean()
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}, error {error:.3f}")
