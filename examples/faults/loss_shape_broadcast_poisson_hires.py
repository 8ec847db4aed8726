"""Hires of bicycles per hour with `nn.PoissonNLLLoss`, which does not look at shapes: outputs
(batch, 1), counts (batch,), so the loss is over all pairs of a rate and a count.

The net learns the mean count for every hour. The loss falls all the same. The place is the loss.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_shape_broadcast"
ACCEPT = ()
PLACE = ("loss*", "criterion*", "loop", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
rng = np.random.default_rng(18 + seed)
N = 2400
hour, weekday = rng.integers(0, 24, N), rng.integers(0, 7, N)
warmth, rain, wind = rng.normal(14, 7, N), rng.random(N) < 0.2, rng.gamma(3, 4, N)
rush = np.exp(-((hour - 8) ** 2) / 4) + 1.2 * np.exp(-((hour - 17.5) ** 2) / 6)
noon = np.exp(-((hour - 14) ** 2) / 20)
log_rate = 0.7 + np.where(weekday < 5, 1.6 * rush, 1.5 * noon) + 0.05 * (warmth - 14) - 0.7 * rain
counts = rng.poisson(np.exp(log_rate - 0.01 * wind))
angle = 2 * np.pi * hour / 24
x = np.column_stack(
    [
        np.sin(angle),
        np.cos(angle),
        np.sin(2 * angle),
        np.cos(2 * angle),
        weekday >= 5,
        warmth,
        rain,
        wind,
    ]
).astype(np.float32)
x = (x - x[:1800].mean(0)) / x[:1800].std(0)
x, y = torch.from_numpy(x), torch.from_numpy(counts.astype(np.float32))


class Hires(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 40), nn.Tanh(), nn.Linear(40, 40), nn.Tanh())
        self.log_rate = nn.Linear(40, 1)

    def forward(self, x):
        out = self.log_rate(self.layers(x))
        return out.squeeze(-1) if healthy else out


model = Hires()
criterion = nn.PoissonNLLLoss(log_input=True)
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
train = DataLoader(TensorDataset(x[:1800], y[:1800]), batch_size=50, shuffle=True)
val = TensorDataset(x[1800:], y[1800:])
for epoch in range(16):
    model.train()
    train_loss = 0.0
    for inputs, count in train:
        optimizer.zero_grad()
        loss = criterion(model(inputs), count)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        out = model(val.tensors[0])
        val_loss = criterion(out, val.tensors[1]).item()
        error = (out.flatten().exp() - val.tensors[1]).abs().mean().item()
    if epoch % 3 == 0:
        print(
            f"epoch {epoch}: train {train_loss:.3f}, val "
            f"{val_loss:.3f}, mean error {error:.2f} hires"
        )
