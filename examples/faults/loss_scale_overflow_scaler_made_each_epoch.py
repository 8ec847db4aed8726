"""Half precision by autocast; the GradScaler is made inside train_one_epoch, with a loss summed
over pixels.

Each epoch begins with the scale of 2**24 again and spends most of its batches on halving it: the
gradients overflow and step() is skipped. The twin makes one scaler before the epochs. The place
is the loop. The loss falls in the few steps that are taken (silent).
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ()
PLACE = ("loop", "optimizer", "loss*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
INIT_SCALE = 2.0**24


class Inpainter(nn.Module):
    """Fills in the hidden lower right quarter of a digit."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
        self.decoder = nn.Linear(64, 16)

    def forward(self, x):
        return self.decoder(self.encoder(x))


def hide(x):
    x = x.clone()
    target = x[:, 0, 4:, 4:].flatten(1)
    x[:, 0, 4:, 4:] = 0
    return x.flatten(1), target


def train_one_epoch(model, optimizer, scaler, x, y):
    model.train()
    if scaler is None:
        scaler = torch.amp.GradScaler("cpu", init_scale=INIT_SCALE)
    total, taken = 0.0, 0
    for rows in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(x[rows])
        loss = F.mse_loss(out.float(), y[rows], reduction="sum") / len(rows)
        scaler.scale(loss).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        taken += scaler.get_scale() >= before
        total += loss.item() * len(rows) / len(x)
    return total, taken, scaler


x, _, x_val, _ = images(seed)
(x, y), (x_val, y_val) = hide(x), hide(x_val)
model = Inpainter()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=INIT_SCALE) if healthy else None
for epoch in range(19):
    loss, taken, _ = train_one_epoch(model, optimizer, scaler, x, y)
    model.eval()
    with torch.no_grad():
        val = F.mse_loss(model(x_val), y_val, reduction="sum").item() / len(x_val)
    if epoch % 3 == 0:
        print(f"epoch {epoch}: loss {loss:.3f} val {val:.3f} steps taken {taken} of 22")
