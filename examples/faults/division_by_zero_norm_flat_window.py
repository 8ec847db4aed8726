"""A model of heart-rate windows scales each window by its own deviation, and some windows are flat.

A sensor that fell off sends one value for the whole window: (x - mean) / 0 is 0/0, the loss is NaN
at the first batch with such a window, and one step later so are all weights. The place is the
scaling module.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("scale*", "")
SILENT = False
EXACT = True
EARLY = True

healthy, _ = arguments(__doc__)


class ScaleWindow(nn.Module):
    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        spread = centred.pow(2).mean(-1, keepdim=True).sqrt()
        if healthy:
            spread = spread.clamp(min=1e-3)
        return centred / spread


class Monitor(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = ScaleWindow()
        self.conv = nn.Conv1d(1, 16, 7, padding=3)
        self.conv2 = nn.Conv1d(16, 16, 5, padding=2)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        h = torch.relu(self.conv(self.scale(x)[:, None]))
        h = torch.relu(self.conv2(h))
        return self.out(torch.cat([h.mean(2), h.amax(2)], 1))[:, 0]


def windows(n, length=48, fallen_off=0.004):
    """Windows of pulse: 1 if the beat is irregular. A few are from a sensor on the table."""
    irregular = (torch.rand(n) < 0.5).float()
    gap = 0.55 + 0.1 * torch.rand(n, 1)
    jitter = irregular[:, None] * torch.randn(n, length) * 0.28
    phase = (gap + jitter).cumsum(1) + 6.28 * torch.rand(n, 1)
    x = torch.sin(phase) + 0.5 * torch.sin(2 * phase) + 0.1 * torch.randn(n, length)
    flat = torch.rand(n) < fallen_off
    x[flat] = 0.0
    irregular[flat] = 0.0
    return x, irregular


x, y = windows(2000)
x_val, y_val = windows(500)
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
model = Monitor()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
loss_fn = nn.BCEWithLogitsLoss()
for epoch in range(8):
    for window, irregular in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(window), irregular)
        loss.backward()
        optimizer.step()
    scheduler.step()
    with torch.no_grad():
        right = ((model(x_val) > 0) == y_val.bool()).float().mean().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, right {right:.3f}")
