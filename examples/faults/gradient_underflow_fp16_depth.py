"""A convolutional network estimates the depth of drawn scenes in float16 without loss scaling.

The mean over all pixels of the batch, and the small weight that the depth has in the recipe's sum
of tasks, make each gradient tiny: in float16, most are rounded to 0 on their way back. A
GradScaler is created but not enabled. The place is the loop (the scaler; the early layers).
"""

import torch
from data import arguments
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ()
PLACE = ("loop", "enter*", "middle*", "optimizer", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIZE, DEPTH_WEIGHT = 16, 1e-4


def scenes(n):
    """Shaded balls before a slanted wall: the brightness and the depth, standardised."""
    axis = torch.linspace(-1, 1, SIZE)
    gy, gx = torch.meshgrid(axis, axis, indexing="ij")
    slope = torch.randn(n, 2, 1, 1)
    wall = 0.02 + 0.004 * (slope[:, 0] * gx + slope[:, 1] * gy)
    cx, cy = (torch.rand(2, n, 1, 1) - 0.5) * 1.2
    radius = 0.35 + 0.4 * torch.rand(n, 1, 1)
    bump = (radius**2 - (gx - cx) ** 2 - (gy - cy) ** 2).clamp_min(0).sqrt()
    depth = wall - 0.02 * bump
    light = 1 - 30 * (depth - 0.01) + 0.15 * torch.randn(n, SIZE, SIZE)
    parts = [(part - part.mean()) / part.std() for part in (light, depth)]
    return parts[0].unsqueeze(1), parts[1].unsqueeze(1)


class DepthNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.middle1 = nn.Conv2d(width, width, 3, padding=1)
        self.middle2 = nn.Conv2d(width, width, 3, padding=1)
        self.leave = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        x = torch.relu(self.enter(x))
        x = torch.relu(self.middle1(x))
        x = torch.relu(self.middle2(x))
        return self.leave(x)


x, depth = scenes(1000)
x_val, d_val = x[800:], depth[800:]
model = DepthNet()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scaler = torch.amp.GradScaler("cpu", enabled=healthy)
criterion = nn.MSELoss()
for epoch in range(13):
    model.train()
    for rows in torch.randperm(800).split(50):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(x[rows])
        loss = DEPTH_WEIGHT * criterion(out.float(), depth[rows])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    model.eval()
    with torch.no_grad():
        val = criterion(model(x_val), d_val).item()
    print(f"epoch {epoch} train loss {loss.item():.3e} val mse {val:.4f} (of 1)")
