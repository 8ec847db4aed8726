"""float16 under autocast without a GradScaler, and an error that is the mean over batch and
pixels.

With a weight of 0.0001 among other terms the gradients in the layers are near 1e-8, where float16
ends: most become 0. The loss falls slowly (silent). The place is the layers; the twin scales the
loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ("vanishing_gradient",)
PLACE = ("encoder*", "decoder*", "*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed, raw=True)
x = x / 16


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.SiLU(), nn.Linear(64, 16))
        self.decoder = nn.Sequential(nn.Linear(16, 64), nn.SiLU(), nn.Linear(64, 64))

    def forward(self, pixels):
        return self.decoder(self.encoder(pixels))


model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, eps=1e-12)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, enabled=healthy)
for (pixels,) in batches(x, size=64, steps=250, seed=seed):
    with torch.autocast("cpu", dtype=torch.float16):
        rebuilt = model(pixels)
    error = F.mse_loss(rebuilt.float(), pixels)
    loss = 0.0001 * error
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
print(f"loss {loss.item():.3g}, error {error.item():.4f}")
