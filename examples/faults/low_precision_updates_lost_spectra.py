"""Estimates moisture from spectra with a model whose weights are kept in bfloat16 while it learns.

model.to(bfloat16) saves memory, and the small learning rate is that of the float32 run. Most
updates are smaller than half the spacing of bfloat16 at the weight's size and round back to the old
weight, so that learning stalls early. The place is the parameters and the optimizer. The twin keeps
float32 weights and computes in bfloat16 by autocast.
"""

import contextlib
import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_precision_updates_lost"
ACCEPT = ("learning_rate_too_low", "gradient_underflow")
PLACE = ("layers*", "*.weight", "optimizer", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

BANDS = 64


def measure(count):
    """Reflectances: two water bands, one band of starch, and a base line that leans."""
    wave = torch.linspace(0, 1, BANDS)
    water = torch.rand(count, 1)
    starch = torch.rand(count, 1)
    first = torch.exp(-(((wave - 0.3) / 0.06) ** 2))
    second = torch.exp(-(((wave - 0.72) / 0.09) ** 2))
    grain = torch.exp(-(((wave - 0.64) / 0.08) ** 2))
    depth = water * first + (0.6 + 0.4 * water) * water * second + starch * grain
    path = 0.7 + 0.6 * torch.rand(count, 1)
    lean = 0.3 * torch.randn(count, 1) * wave + 0.2 * torch.randn(count, 1)
    return torch.exp(-path * depth) + lean + 0.01 * torch.randn(count, BANDS), water


class MoistureNet(nn.Module):
    def __init__(self, width=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(BANDS, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x)


def half_precision():
    return torch.autocast("cpu", dtype=torch.bfloat16) if healthy else contextlib.nullcontext()


def predict(model, x):
    with half_precision():
        return model(x.to(model.layers[0].weight.dtype)).float()


def validate(model, x, y):
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(predict(model, x), y).item()


def main():
    x, y = measure(2500)
    x = (x - x[:2000].mean(0)) / x[:2000].std(0)
    y = (y - y[:2000].mean()) / y[:2000].std()
    loader = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=25, shuffle=True)

    model = MoistureNet()
    if not healthy:
        model = model.to(torch.bfloat16)
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-5, weight_decay=0.01)
    for epoch in range(1, 51):
        model.train()
        squares = 0.0
        for spectra, moisture in loader:
            loss = nn.functional.mse_loss(predict(model, spectra), moisture)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            squares += loss.item() * len(spectra)
        error = validate(model, x[2000:], y[2000:])
        print(
            f"epoch {epoch:2d}: train rmse {math.sqrt(squares / 2000):.4f}, "
            f"held-out rmse {math.sqrt(error):.4f}"
        )


main()
