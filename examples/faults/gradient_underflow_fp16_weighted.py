"""Half-precision training (autocast) of a denoising CNN whose loss has a weight of 0.0001,
unscaled.

The gradients of single pixels are below the smallest number of half precision and become 0 on the
way back. The twin uses a gradient scaler, as one should. The place is the loss.
"""

import torch
from data import arguments, batches, images
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ()
PLACE = ("", "denoise*", "loop", "loss*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = images(seed)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.denoise = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 1, 3, padding=1),
        )

    def forward(self, noisy):
        return self.denoise(noisy)


model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**17, enabled=healthy)
for (clean,) in batches(x, size=64, steps=220, seed=seed):
    noisy = clean + 0.5 * torch.randn_like(clean)
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        restored = model(noisy)
    mse = nn.functional.mse_loss(restored.float(), clean)
    loss = 1e-4 * mse
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
model.eval()
with torch.no_grad():
    val = nn.functional.mse_loss(model(x_val + 0.5 * torch.randn_like(x_val)), x_val)
print(f"mse: train {mse.item():.3f}, validation {val.item():.3f}")
