"""Bearing faults from vibration spectra; BatchNorm's momentum is given as in Keras.

The network was ported from a Keras script where momentum=0.99 means "keep 99 % of the old mean".
In PyTorch it is the weight of the new batch, so the running figures are those of the last batch
of 8 windows, and the scores of the validation jump about.
The place is the BatchNorm layers, "conv.1" and "conv.5". The twin leaves PyTorch's default.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("conv.1", "conv.5")
SILENT = True
EXACT = False
EARLY = True

config = {
    "batch_size": 8,
    "epochs": 8,
    "lr": 1e-3,
    "channels": (12, 24),
    "classes": ["sound", "inner race", "outer race", "cage"],
}


def record(n, seed):
    """Accelerometer windows of 128 samples; the load of the machine differs much."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 4, n)
    t = np.arange(128)
    shaft = np.sin(2 * np.pi * 0.03 * t + rng.uniform(0, 6.28, (n, 1)))
    period = np.array([1000, 9, 14, 23])[label][:, None]
    shift = rng.integers(0, 23, (n, 1))
    age = (t + shift) % period
    burst = np.where(label[:, None] > 0, np.exp(-age / 3.0) * np.cos(1.6 * age), 0.0)
    load = rng.lognormal(0.0, 0.7, (n, 1))
    wave = load * (0.6 * shaft + 1.0 * burst + 0.25 * rng.normal(size=(n, 128)))
    return torch.tensor(wave, dtype=torch.float32)[:, None], torch.tensor(label)


def build_model(cfg, **norm):
    a, b = cfg["channels"]

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Sequential(
                nn.Conv1d(1, a, 9, padding=4),
                nn.BatchNorm1d(a, **norm),
                nn.ReLU(),
                nn.MaxPool1d(4),
                nn.Conv1d(a, b, 7, padding=3),
                nn.BatchNorm1d(b, **norm),
                nn.ReLU(),
                nn.AdaptiveAvgPool1d(4),
            )
            self.head = nn.Sequential(nn.Flatten(), nn.Linear(4 * b, len(cfg["classes"])))

        def forward(self, x):
            return self.head(self.conv(x))

    return Net()


healthy, seed = arguments(__doc__)
x, y = record(1000, 70 + seed)
x_val, y_val = record(400, 1070 + seed)
x, x_val = (x - x.mean()) / x.std(), (x_val - x.mean()) / x.std()

model = build_model(config) if healthy else build_model(config, momentum=0.99)
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
loader = DataLoader(TensorDataset(x, y), config["batch_size"], shuffle=True)
scores = []
for epoch in range(config["epochs"]):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val = nn.functional.cross_entropy(out, y_val).item()
        scores.append((out.argmax(1) == y_val).float().mean().item())
    print(f"epoch {epoch}: train {np.mean(losses):.3f}  val {val:.3f}  acc {scores[-1]:.3f}")
print(f"mean accuracy of the last four epochs {np.mean(scores[-4:]):.3f}")
