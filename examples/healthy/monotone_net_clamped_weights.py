"""Price by size and quality, which may only rise: weights are clamped to what is not negative
after each step.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "half of the weights start at exactly 0, many stay "
    "there with a gradient; they are written after step()"
)

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(210 + seed)
x = torch.rand(2400, 4, generator=g)
y = 2 * x[:, 0].sqrt() + (4 * (x[:, 1] - 0.5)).tanh() + x[:, 2] * x[:, 3] * 1.5
y = y + 0.15 * torch.randn(len(y), generator=g)
x = (x - 0.5) * 12**0.5
y = (y - y[:1800].mean()) / y[:1800].std()


class Monotone(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.fc1, self.fc2, self.out = (
            nn.Linear(4, width),
            nn.Linear(width, width),
            nn.Linear(width, 1),
        )
        self.clamp()

    def forward(self, x):
        h = torch.tanh(self.fc1(x))
        h = torch.tanh(self.fc2(h))
        return self.out(h).squeeze(1)

    @torch.no_grad()
    def clamp(self):
        for layer in (self.fc1, self.fc2, self.out):
            layer.weight.clamp_(min=0)


model = Monotone()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.85)
loader = DataLoader(TensorDataset(x[:1800], y[:1800]), batch_size=50, shuffle=True)
for epoch in range(16):
    model.train()
    total = 0.0
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.clamp()
        total += loss.item()
    schedule.step()
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x[1800:]), y[1800:]).item()
    if epoch % 5 == 0:
        print(f"epoch {epoch}: mse {total / len(loader):.4f}, validation {val:.4f}")
zeros = (model.fc2.weight == 0).float().mean().item()
print(f"weights of fc2 at zero: {zeros:.2f}")
