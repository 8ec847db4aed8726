"""Cleans noisy heart traces in half precision, without scaling the loss.

The loss is the mean over all samples of all traces, in volts, so the gradient of every sample is
tiny: less than half precision can hold, and it becomes 0 on the way back. On another machine
bfloat16 was used, which needs no scaler, so there was none. The place is the loop.
The twin scales the loss with a GradScaler.
"""

import torch
from data import arguments
from torch import nn

KIND = "gradient_underflow"
ACCEPT = ()
PLACE = ("loop", "loss*", "optimizer", "decoder", "encoder")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH, BATCH, FULL_SCALE = 160, 64, 0.02


def traces(n, g):
    t = torch.arange(LENGTH).float()
    period = 35 + 25 * torch.rand(n, 1, generator=g)
    phase = (t + period * torch.rand(n, 1, generator=g)) % period
    clean = torch.exp(-((phase - 10) ** 2) / 6) - 0.3 * torch.exp(-((phase - 15) ** 2) / 8)
    clean += 0.35 * torch.exp(-((phase - 26) ** 2) / 20)
    return clean + 0.5 * torch.randn(n, LENGTH, generator=g), FULL_SCALE * clean


class Denoiser(nn.Module):
    """From digitiser counts to volts."""

    def __init__(self, hidden=96):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(LENGTH, hidden), nn.GELU())
        self.decoder = nn.Sequential(
            nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, LENGTH)
        )

    def forward(self, counts):
        return FULL_SCALE * self.decoder(self.encoder(counts))


g = torch.Generator().manual_seed(7 + seed)
noisy, clean = traces(2000, g)
noisy_val, clean_val = traces(400, g)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", enabled=healthy)
for epoch in range(12):
    total = 0.0
    for rows in torch.randperm(len(noisy)).split(BATCH):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(noisy[rows])
        loss = nn.functional.mse_loss(out.float(), clean[rows])
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        total += loss.item() * len(rows)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        rest = (model(noisy_val).float() - clean_val).square().mean().sqrt()
    print(f"epoch {epoch:2d} loss {total / len(noisy):.3e} left over {1000 * rest:.3f} mV")
