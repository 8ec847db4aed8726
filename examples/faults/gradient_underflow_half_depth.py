"""Fine corrections of a laser scan in half precision, without a scaler for the small gradients.

To save memory the forward pass runs under autocast with float16. The loss is a mean over all
points and has the small weight it had in a joint training with a second task: its derivative is
below the smallest number that half precision knows, and most of it is 0 on its way back.
The place is the loss / the backward pass: there is no GradScaler.
The twin has one.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ()
PLACE = ("loss*", "optimizer", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
POINTS = 256
DEPTH_WEIGHT = 1e-4


def scans(n, g):
    """Six readings for each point and the correction of its distance, in tenths of a millimetre."""
    readings = torch.randn(n, POINTS, 6, generator=g)
    bend = torch.tanh(readings[..., 0] * readings[..., 1]) + 0.7 * readings[..., 2]
    noise = 0.1 * torch.randn(n, POINTS, generator=g)
    return readings, bend + noise


class Correction(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(6, width), nn.GELU(), nn.Linear(width, width), nn.GELU()
        )
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(self.layers(x)).squeeze(-1)


g = torch.Generator().manual_seed(seed)
x, y = scans(160, g)
x_val, y_val = scans(40, g)
model = Correction()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", enabled=healthy)

step = 0
for epoch in range(9):
    for rows in torch.randperm(len(x)).split(8):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            guess = model(x[rows])
            loss = DEPTH_WEIGHT * nn.functional.mse_loss(guess.float(), y[rows])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        step += 1
    with torch.no_grad():
        rmse = (model(x_val) - y_val).pow(2).mean().sqrt().item()
    if epoch % 3 == 2:
        print(f"step {step}: loss {loss.item():.3e}, val rmse {rmse / 10:.4f} mm")
