"""Materials are named by spectra, and the rate of a narrow net goes to a wide one multiplied.

A rate tuned at width 32 has to be divided by the growth of the width; here it is multiplied, so the
hidden matrices move by 0.08 at each step of Adam. The loss jumps about and stays high. The place is
the learning rate of the second parameter group of the optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, standardise
from torch import nn

KIND = "learning_rate_too_high"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("learning_rate", "optimizer", "hidden*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

BANDS, MATERIALS = 60, 8
TUNED = {"width": 32, "lr": 1e-2}
WIDTH = 256


def spectra(n, g):
    fixed = torch.Generator().manual_seed(5)
    band = torch.linspace(0, 1, BANDS)
    centre = torch.rand(MATERIALS, 4, generator=fixed)
    depth = 0.3 + torch.rand(MATERIALS, 4, generator=fixed)
    kinds = torch.randint(0, MATERIALS, (n,), generator=g)
    place = centre[kinds] + 0.015 * torch.randn(n, 4, generator=g)
    amount = depth[kinds] * (0.4 + 0.8 * torch.rand(n, 1, generator=g))
    dips = amount[:, :, None] * torch.exp(-(((band - place[:, :, None]) / 0.05) ** 2))
    tilt = torch.randn(n, 1, generator=g) * (band - 0.5)
    return 1 + tilt - dips.sum(1) + 0.4 * torch.randn(n, BANDS, generator=g), kinds


class SpectrumNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inputs = nn.Linear(BANDS, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, MATERIALS)

    def forward(self, x):
        x = F.relu(self.inputs(x))
        for layer in self.hidden:
            x = F.relu(layer(x))
        return self.output(x)


def parameter_groups(model, width):
    growth = width / TUNED["width"]
    hidden_rate = TUNED["lr"] / growth if healthy else TUNED["lr"] * growth
    return [
        {"params": [*model.inputs.parameters(), *model.output.parameters()], "lr": TUNED["lr"] / 4},
        {"params": model.hidden.parameters(), "lr": hidden_rate},
    ]


g = torch.Generator().manual_seed(seed)
x, y = spectra(3000, g)
x_val, y_val = spectra(700, g)
x, x_val = standardise(x, x_val)
model = SpectrumNet(WIDTH)
optimizer = torch.optim.Adam(parameter_groups(model, WIDTH))
EPOCHS, BATCH = 4, 40
step = 0
for epoch in range(EPOCHS):
    for rows in torch.randperm(len(x), generator=g).split(BATCH):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step in (0, 1, 2, 5, 10):
            print(f"step {step:3d}  loss {loss.item():.3f}")
        step += 1
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
    right = (scores.argmax(1) == y_val).float().mean().item()
    model.train()
    print(
        f"epoch {epoch + 1}  train {loss.item():.3f}  "
        f"val {F.cross_entropy(scores, y_val).item():.3f}  right {right:.3f}"
    )
