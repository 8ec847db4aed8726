"""Autoencoder for spectrograms of a machine's vibration in float16; gradients fall to zero.

The mean over a whole batch of spectrograms makes each output's share of the gradient tiny. Under
autocast to float16 it is smaller than the smallest float16 number before it has reached the
encoder. The script came from bfloat16, where no scaler is needed, and was moved to a float16 card.
The place is the loss's scale in the loop (the gradients of "encoder"). The twin has a GradScaler.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ("low_precision_updates_lost", "vanishing_gradient")
PLACE = ("loop", "loss*", "encoder", "encoder.0", "encoder.2", "decoder", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BATCH, BINS = 64, 96


def spectrograms(n, seed):
    """Harmonics of the turning speed, scaled so that 1.0 is the alarm level."""
    rng = np.random.default_rng(seed)
    speed = rng.uniform(16, 24, (n, 1))
    f = np.arange(BINS)
    out = np.zeros((n, BINS))
    for k in (1, 2, 3):
        height = rng.uniform(0.2, 1.0, (n, 1)) / k
        out += height * np.exp(-(((f - k * speed) / 6) ** 2))
    return torch.tensor(0.02 * (out + 0.01 * rng.normal(size=out.shape)), dtype=torch.float32)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(BINS, 48), nn.GELU(), nn.Linear(48, 24), nn.GELU(), nn.Linear(24, 8)
        )
        self.decoder = nn.Sequential(
            nn.Linear(8, 24), nn.GELU(), nn.Linear(24, 48), nn.GELU(), nn.Linear(48, BINS)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


x, x_val = spectrograms(1024, 800 + seed), spectrograms(256, 1800 + seed)
model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", enabled=healthy)

for epoch in range(25):
    running = 0.0
    for batch in x[torch.randperm(len(x))].split(BATCH):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(batch / 0.02) * 0.02, batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        running += loss.item()
    if epoch % 5 == 4:
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
            val = nn.functional.mse_loss(model(x_val / 0.02).float() * 0.02, x_val)
        share = val.item() / x_val.var(0).mean().item()
        print(f"epoch {epoch + 1}: train {running / 16:.3e}, unexplained on test {share:.3f}")
