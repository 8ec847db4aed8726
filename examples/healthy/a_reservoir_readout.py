"""An echo-state network foresees a chaotic series: a recurrent layer with random weights that are
never trained, and a linear readout of which alone the optimizer knows.

The weights are scaled to a spectral radius of 0.9. What looks odd (most parameters frozen at random
values, the recurrent part under no_grad) is what a reservoir is.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "most parameters are frozen at random values"

_, seed = arguments(__doc__)


class EchoState(nn.Module):
    def __init__(self, size=150, radius=0.9):
        super().__init__()
        self.reservoir = nn.RNN(1, size, batch_first=True)
        self.readout = nn.Sequential(
            nn.LayerNorm(size, elementwise_affine=False), nn.Linear(size, 1)
        )
        with torch.no_grad():
            w = torch.randn(size, size) * (torch.rand(size, size) < 0.1)
            self.reservoir.weight_hh_l0.copy_(radius * w / torch.linalg.eigvals(w).abs().max())
            self.reservoir.weight_ih_l0.uniform_(-0.8, 0.8)
        self.reservoir.requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            states = self.reservoir(x)[0][:, -1]
        return self.readout(states).squeeze(1)


def mackey_glass(n, g, delay=17):
    x = (1.2 + 0.1 * torch.randn(delay + 1, generator=g)).tolist()
    for _ in range(n + 300):
        x.append(x[-1] + 0.2 * x[-delay - 1] / (1 + x[-delay - 1] ** 10) - 0.1 * x[-1])
    return torch.tensor(x[-n:])


def windows(series, length=40, ahead=3):
    x = series.unfold(0, length + ahead, 1)
    return x[:, :length, None], x[:, -1]


series = mackey_glass(3000, torch.Generator().manual_seed(seed))
series = (series - series[:2200].mean()) / series[:2200].std()
train = DataLoader(
    TensorDataset(*windows(series[:2200])), batch_size=64, shuffle=True, drop_last=True
)
x_val, y_val = windows(series[2300:])
model = EchoState()
optimizer = torch.optim.AdamW(
    [p for p in model.parameters() if p.requires_grad], lr=5e-3, weight_decay=1e-3
)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
mse = nn.MSELoss()
for epoch in range(10):
    model.train()
    total = 0.0
    for x, y in train:
        loss = mse(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    schedule.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch} train {total:.4f} val {mse(model(x_val), y_val).item():.4f}")
