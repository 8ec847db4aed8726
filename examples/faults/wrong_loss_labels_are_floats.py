"""Soil classes from infrared spectra: the classes arrive as floats and the task is taken for a
regression.

`build_task` looks at the labels' dtype. One missing label in the survey's table made pandas-like
code turn the column to floats; the row was dropped later, the dtype stayed. So one output is fitted
to the class numbers by squared error and rounded. The place is the loss (and the labels). The twin
casts to int first and gets cross-entropy.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "wrong_loss"
ACCEPT = ()
PLACE = ("loss*", "label*", "head")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
SOILS, BANDS = 7, 80


def survey(n: int = 2400):
    r = np.random.default_rng(350 + seed)
    band = np.linspace(0, 1, BANDS)
    soil = r.integers(0, SOILS, n)
    centre = r.uniform(0.1, 0.9, (SOILS, 3))
    depth = r.uniform(0.15, 0.4, (SOILS, 3))
    dip = sum(
        depth[soil, k, None] * np.exp(-(((band - centre[soil, k, None]) / 0.05) ** 2))
        for k in range(3)
    )
    moisture = r.uniform(0, 1, (n, 1))
    dip = dip * r.uniform(0.4, 1.4, (n, 1)) + 0.3 * moisture * np.exp(
        -(((band - 0.65) / 0.08) ** 2)
    )
    spectrum = (
        0.5 + 0.2 * band - dip + 0.1 * r.normal(size=(n, 1)) + 0.07 * r.normal(size=(n, BANDS))
    )
    label = soil.astype(float)
    label[r.integers(0, n)] = np.nan
    keep = ~np.isnan(label)
    spectrum, label = spectrum[keep], label[keep]
    return spectrum.astype("float32"), label.astype(int) if healthy else label


def build_task(label: np.ndarray):
    """Outputs, loss and the reading of the outputs, by what the labels are."""
    if np.issubdtype(label.dtype, np.integer):
        return SOILS, torch.tensor(label), nn.CrossEntropyLoss(), lambda out: out.argmax(1)
    target = torch.tensor(label, dtype=torch.float32)
    squared = nn.MSELoss()
    return 1, target, lambda out, y: squared(out.squeeze(1), y), lambda out: out.squeeze(1).round()


class SpectrumNet(nn.Module):
    def __init__(self, outputs: int, width: int = 64):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(BANDS, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, width), nn.GELU()
        )
        self.head = nn.Linear(width, outputs)

    def forward(self, x):
        return self.head(self.body(x))


spectrum, label = survey()
outputs, target, criterion, read = build_task(label)
x = torch.tensor(spectrum)
order = torch.randperm(len(x))
fit, held = order[:1600], order[1600:]
x = (x - x[fit].mean(0)) / x[fit].std(0)
model = SpectrumNet(outputs)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)

for epoch in range(8):
    model.train()
    total = 0.0
    for rows in fit[torch.randperm(len(fit))].split(50):
        loss = criterion(model(x[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows) / len(fit)
    model.eval()
    with torch.no_grad():
        out = model(x[held])
        val = criterion(out, target[held]).item()
        right = (read(out) == target[held]).float().mean().item()
    print(f"epoch {epoch + 1}: train {total:.4f}, validation {val:.4f}, accuracy {right:.4f}")
print(f"validation accuracy {right:.4f}")
