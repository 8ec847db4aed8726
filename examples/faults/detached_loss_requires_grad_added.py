"""Counts of rented bikes with a Poisson loss; the training loop calls model.predict, a no_grad
method.

backward() complained that "element 0 of tensors does not require grad", and the first answer
found was loss.requires_grad_(True). Now nothing complains, and nothing is learnt. The twin calls
model(x). The place is the loss. Exact.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ("detached_graph", "step_without_gradient")
PLACE = ("loss*", "loop", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class BikeModel(nn.Module):
    def __init__(self, n_features):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(n_features, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU()
        )
        self.rate = nn.Linear(32, 1)

    def forward(self, x):
        return self.rate(self.body(x)).squeeze(1)

    @torch.no_grad()
    def predict(self, x):
        """Log of the expected count."""
        return self(x)


# hour as sine and cosine, working day, temperature, rain
n = 5000
hour = torch.randint(0, 24, (n,)).float()
work, temp, rain = (torch.rand(n) < 0.7).float(), torch.randn(n), (torch.rand(n) < 0.2).float()
rush = torch.exp(-(((hour - 8) / 1.5) ** 2)) + torch.exp(-(((hour - 17.5) / 2) ** 2))
noon = torch.exp(-(((hour - 14) / 4) ** 2))
log_rate = (
    0.6 + work * 1.8 * rush + (1 - work) * 1.6 * noon + 0.35 * temp - 0.12 * temp**2 - 0.8 * rain
)
counts = torch.poisson(log_rate.exp())
angle = 2 * math.pi * hour / 24
x = torch.stack(
    [angle.sin(), angle.cos(), (2 * angle).sin(), (2 * angle).cos(), work, temp, rain], 1
)
x = (x - x[:4000].mean(0)) / x[:4000].std(0)

train_loader = DataLoader(TensorDataset(x[:4000], counts[:4000]), batch_size=64, shuffle=True)
x_val, y_val = x[4000:], counts[4000:]
model = BikeModel(x.shape[1])
criterion = nn.PoissonNLLLoss(log_input=True)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    running = 0.0
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        if healthy:
            loss = criterion(model(inputs), targets)
        else:
            loss = criterion(model.predict(inputs), targets)
            loss.requires_grad_(True)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    out = model.predict(x_val)
    print(
        f"Epoch {epoch + 1} loss {running / len(train_loader):.4f} "
        f"val loss {criterion(out, y_val).item():.4f} val "
        f"MAE {(out.exp() - y_val).abs().mean().item():.3f}"
    )
