"""A network predicts kidney function from laboratory records streamed site by site; late in the
stream one site reports creatinine in other units.

About a thousand records come as umol/L instead of mg/dL, 88 times as large. The loss jumps by
orders of magnitude and the weights are thrown off. The place is the input (column 2 of the late
batches).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "loss_spike"
ACCEPT = ("exploding_gradient", "input_not_normalized", "train_val_mismatch")
PLACE = ("input*", "loader", "loop", "loss")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

COLUMNS = ["age", "weight", "creatinine", "urea", "albumin", "haemoglobin", "systolic", "potassium"]
MEAN = np.array([58, 76, 1.15, 38, 4.0, 13.2, 132, 4.3])
STD = np.array([15, 15, 0.45, 14, 0.45, 1.7, 18, 0.45])


def records(n, rng):
    age = rng.normal(58, 15, n).clip(18, 95)
    weight = rng.normal(76, 15, n).clip(40, 150)
    sick = rng.beta(1.5, 4, n)
    creatinine = 0.75 + 1.6 * sick + rng.normal(0, 0.12, n)
    urea = 25 + 50 * sick + rng.normal(0, 8, n)
    albumin = 4.3 - 0.9 * sick + rng.normal(0, 0.3, n)
    haemoglobin = 14 - 2.6 * sick + rng.normal(0, 1.3, n)
    systolic = 120 + 20 * sick + 0.2 * (age - 58) + rng.normal(0, 14, n)
    potassium = 4.1 + 0.7 * sick + rng.normal(0, 0.35, n)
    gfr = (
        142 * (creatinine.clip(0.4) / 0.9) ** -1.2 * 0.9938**age * (weight / 76) ** 0.2
        - 4 * (4 - albumin)
        + rng.normal(0, 5, n)
    )
    return np.stack(
        [age, weight, creatinine, urea, albumin, haemoglobin, systolic, potassium], 1
    ), gfr


def to_tensors(x, gfr):
    return torch.tensor((x - MEAN) / STD, dtype=torch.float32), torch.tensor(
        (gfr - 85) / 35, dtype=torch.float32
    )


def stream(sites, rng, batch=64, per_site=30):
    """A site after the other, as their exports arrive."""
    for site in range(sites):
        umol = site == sites - 1 and not healthy
        x, gfr = records(batch * per_site, rng)
        if umol:
            x[5 * batch : 20 * batch, 2] *= 88.4
        yield from zip(*(part.split(batch) for part in to_tensors(x, gfr)), strict=False)


class Regressor(nn.Module):
    def __init__(self, d_in, width=64):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d_in, width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )

    def forward(self, x):
        return self.layers(x).squeeze(-1)


rng = np.random.default_rng(seed)
x_val, y_val = to_tensors(*records(1500, np.random.default_rng(4711)))
model = Regressor(len(COLUMNS))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-5)
sites, history = 30, []
decay = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.2, total_iters=sites * 30)
for step, (x, y) in enumerate(stream(sites, rng), 1):
    loss = nn.functional.mse_loss(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 2.0)
    optimizer.step()
    decay.step()
    history.append(loss.item())
    if step % 90 == 0:
        with torch.no_grad():
            r2 = 1 - nn.functional.mse_loss(model(x_val), y_val) / y_val.var()
        print(
            f"step {step:4d} loss {np.mean(history[-30:]):.4f} max {max(history[-90:]):.3g} val R2 {r2:.4f}"  # noqa: E501
        )
