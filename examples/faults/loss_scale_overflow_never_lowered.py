"""A denoising autoencoder in float16 by autocast, whose static loss scale is so large that the
gradients overflow in every step.

The user fixes the scale of GradScaler at 2^32 by update(new_scale); every gradient is infinite,
and the scaler leaves out every step. The place is the optimizer (or the loop or loss, with the
scaler).
"""

import torch
from data import arguments, batches, digits
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("optimizer", "loop", "loss")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SCALE = 2.0**10 if healthy else 2.0**32


class Denoiser(nn.Module):
    def __init__(self, code=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.GELU(), nn.Linear(96, code))
        self.decoder = nn.Sequential(nn.Linear(code, 96), nn.GELU(), nn.Linear(96, 64))

    def forward(self, x):
        return self.decoder(self.encoder(x))


x, _, x_val, _ = digits(seed)
noise = torch.Generator().manual_seed(seed)
x_val_noisy = x_val + 0.4 * torch.randn(x_val.shape, generator=noise)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=SCALE)

for step, (clean,) in enumerate(batches(x, size=64, steps=600, seed=seed)):
    noisy = clean + 0.4 * torch.randn(clean.shape, generator=noise)
    with torch.autocast("cpu", dtype=torch.float16):
        restored = model(noisy)
        loss = nn.functional.mse_loss(restored.float(), clean)
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update(SCALE)
    if step % 100 == 99:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val_noisy), x_val).item()
        print(f"step {step + 1} loss {loss.item():.4f} validation mse {val:.4f}")
