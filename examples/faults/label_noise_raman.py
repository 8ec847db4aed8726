"""A 1-D CNN names minerals by their Raman spectra; 40 % of the training labels are wrong.

The lab's labels came from an unchecked automatic matching, so that many training spectra carry
the name of some other mineral; the validation spectra were labelled by hand. The network learns
the rule first and then learns the wrong names by heart. The place is the training targets
(input/loader).
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*", "loss")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

MINERALS, POINTS = 8, 96
r = np.random.default_rng(40 + seed)
axis = np.linspace(0, 1, POINTS)
lines = r.uniform(0.08, 0.92, (MINERALS, 4))
heights = r.uniform(0.4, 1.2, (MINERALS, 4))


def spectra(n):
    y = r.integers(0, MINERALS, n)
    shift = r.normal(0, 0.012, (n, 1, 1))
    width = r.uniform(0.012, 0.03, (n, 1, 1))
    height = heights[y][:, :, None] * r.lognormal(0, 0.35, (n, 4, 1))
    peaks = height * np.exp(-0.5 * ((axis - lines[y][:, :, None] - shift) / width) ** 2)
    background = r.uniform(0, 0.8, (n, 1)) * np.exp(-axis * r.uniform(0.5, 3, (n, 1)))
    x = peaks.sum(1) + background + r.normal(0, 0.3, (n, POINTS))
    return torch.tensor(x, dtype=torch.float32).unsqueeze(1), torch.tensor(y)


x, y = spectra(1000)
x_val, y_val = spectra(500)
mean, std = x.mean(), x.std()
x, x_val = (x - mean) / std, (x_val - mean) / std

share = 0.0 if healthy else 0.4
wrong = torch.rand(len(y)) < share
y = torch.where(wrong, (y + torch.randint(1, MINERALS, y.shape)) % MINERALS, y)

model = nn.Sequential(
    nn.Conv1d(1, 16, 7, padding=3),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 32, 5, padding=2),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Flatten(),
    nn.Linear(32 * 24, 96),
    nn.ReLU(),
    nn.Linear(96, MINERALS),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=7e-4)
loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
for epoch in range(24):
    model.train()
    total = 0.0
    for spectrum, name in loader:
        optimizer.zero_grad()
        loss = criterion(model(spectrum), name)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(name)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val, accuracy = criterion(out, y_val).item(), (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch:2d} train {total / len(x):.3f} val {val:.3f} accuracy {accuracy:.3f}")
