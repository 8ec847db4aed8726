"""Protein in grain by infrared spectra: spectra and laboratory values are in different orders.

The spectra are read from files in the order of `sorted(names)`, in which "sample_10" comes before
"sample_2"; the laboratory wrote its values in the order of the numbers. The rows no longer belong
together, in the calibration part only, as the check samples have names with leading zeros.
The place is the input.
The twin sorts by the number in the name.
"""

import re

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = True


def measure(count, rng, width=60):
    """A dictionary of spectra by file name and the protein of sample 0, 1, 2, ..."""
    protein = rng.normal(12.5, 1.6, count)
    water = rng.normal(13, 1.0, count)
    axis = np.linspace(0, 1, width)
    bands = [np.exp(-((axis - c) ** 2) / w) for c, w in ((0.3, 0.004), (0.62, 0.01), (0.8, 0.006))]
    base = rng.normal(0, 0.3, (count, 1)) + rng.normal(0, 0.3, (count, 1)) * axis
    amount = [0.1 * protein, 0.15 * water, 0.05 * protein - 0.03 * water]
    spectra = base + sum(a[:, None] * b for a, b in zip(amount, bands, strict=True))
    return spectra + rng.normal(0, 0.02, spectra.shape), protein


def number_of(name):
    return int(re.search(r"\d+", name).group())


def derivative(spectra):
    d = np.diff(spectra, axis=1) * 10
    return torch.tensor(d, dtype=torch.float32)


def main():
    healthy, seed = arguments(__doc__)
    rng = np.random.default_rng(seed)
    spectra, protein = measure(900, rng)
    files = {f"sample_{i}.spc": row for i, row in enumerate(spectra)}
    names = sorted(files, key=number_of) if healthy else sorted(files)
    x = derivative(np.stack([files[name] for name in names]))
    spectra, check = measure(200, rng)
    x_check = derivative(spectra)
    y = torch.tensor((protein - 12.5) / 1.6, dtype=torch.float32)
    y_check = torch.tensor((check - 12.5) / 1.6, dtype=torch.float32)
    mean, std = x.mean(0), x.std(0)
    x, x_check = (x - mean) / std, (x_check - mean) / std

    model = nn.Sequential(nn.Linear(59, 16), nn.GELU(), nn.Linear(16, 1), nn.Flatten(0))
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
    plan = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 12)
    for epoch in range(12):
        losses = []
        for i in torch.randperm(900).split(30):
            loss = nn.functional.mse_loss(model(x[i]), y[i])
            opt.zero_grad()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        plan.step()
        with torch.no_grad():
            sep = 1.6 * nn.functional.mse_loss(model(x_check), y_check).sqrt()
        if epoch % 3 == 2:
            print(f"epoch {epoch + 1}: loss {np.mean(losses):.3f}; check samples {sep:.2f} %")


main()
