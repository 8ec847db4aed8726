"""Fills in the fine structure of pressure maps from coarse ones in half precision; the gradients
are too small for that precision.

The loss is the mean over all maps, with cells weighted by their share of the globe, so the part of
each cell is tiny. The network runs in float16 to save memory, and the scaler for the loss was
switched off while hunting another error. So most gradients are rounded to zero on the way back.
The place is the loss, whose scaler is off.
The twin scales the loss up before the backward pass.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ()
PLACE = ("loss*", "optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
ROWS, COLUMNS = 8, 16


def fields(n):
    """Fine maps whose small waves follow from the large ones, and their coarse versions."""
    lat = torch.linspace(-1.4, 1.4, ROWS).view(1, ROWS, 1)
    lon = torch.linspace(0, 6.283, COLUMNS + 1)[:-1].view(1, 1, COLUMNS)
    fine = torch.zeros(n, ROWS, COLUMNS)
    for k in (1, 2, 3):
        strength = torch.randn(n, 1, 1) / k
        fine = fine + strength * torch.cos(k * lon + 6.283 * torch.rand(n, 1, 1)) * lat.cos()
    fine = fine + 0.5 * torch.tanh(3 * fine)
    coarse = F.avg_pool2d(fine.unsqueeze(1), 2)
    return coarse.flatten(1), fine.flatten(1), lat.cos().expand(1, ROWS, COLUMNS).flatten(1)


class Downscaler(nn.Module):
    def __init__(self, coarse, fine, width=96):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(coarse, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, fine),
        )

    def forward(self, coarse):
        return self.layers(coarse)


x, y, area = fields(1024)
x_val, y_val, _ = fields(256)
# area of each cell as a share of the globe, of which the region is three thousandths
share = 0.003 * area / area.sum()

model = Downscaler(x.shape[1], y.shape[1])
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, eps=1e-12)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, enabled=healthy)

for step, (coarse, fine) in enumerate(batches(x, y, size=64, steps=320, seed=seed), 1):
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        made = model(coarse)
        loss = (share * (made.float() - fine) ** 2).sum() / x.shape[0]
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    if step % 80 == 0:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
            gap = model(x_val).float() - y_val
            wrong = (share / share.sum() * gap**2).sum() / len(x_val)
        print(f"step {step}  loss {loss.item():.3e}  val RMSE {wrong.sqrt().item():.4f}")
