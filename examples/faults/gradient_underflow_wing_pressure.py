"""A surrogate of the pressure around wings in float16 autocast; there is no GradScaler.

The loss is a mean over all points of all fields, with a small weight beside a term to come. Of
such a loss the gradient of one output is some 1e-8, which half precision rounds to zero or to one
of its last few numbers. In float32 the same script had trained well.
The place is the loss and the loop. The twin scales the loss with torch.amp.GradScaler.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ("low_precision_updates_lost",)
PLACE = ("loss*", "loop", ", ")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
FIELD, WEIGHT_DATA = 256, 1e-3


def fields(n, g):
    """Camber, thickness, angle and speed; the pressure at 256 points around the wing."""
    p = torch.rand(n, 4, generator=g) * 2 - 1
    s = torch.linspace(-3.14, 3.14, FIELD)
    suction = (1 + 0.5 * p[:, 2:3]) * torch.exp(-((s - 0.8 - 0.4 * p[:, 0:1]) ** 2) * 3)
    under = (0.5 - 0.3 * p[:, 2:3]) * torch.exp(-((s + 1 + 0.3 * p[:, 1:2]) ** 2) * 2)
    pressure = (1 + 0.4 * p[:, 3:4]) * (under - suction)
    return p, (pressure - pressure.mean()) / pressure.std()


class Surrogate(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 96), nn.GELU(), nn.Linear(96, 96), nn.GELU())
        self.decoder = nn.Linear(96, FIELD)

    def forward(self, p):
        return self.decoder(self.encoder(p))


g = torch.Generator().manual_seed(seed)
x, y = fields(2048, g)
x_val, y_val = fields(256, g)
model = Surrogate()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, eps=1e-12)
scaler = torch.amp.GradScaler("cpu", enabled=healthy)
for epoch in range(60):
    for rows in torch.randperm(len(x), generator=g).split(256):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(x[rows])
            loss = WEIGHT_DATA * nn.functional.mse_loss(out.float(), y[rows])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    if epoch % 10 == 9:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(f"epoch {epoch + 1}: loss {loss.item() / WEIGHT_DATA:.4f} validation {val:.4f}")
