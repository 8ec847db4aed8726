"""Compresses digits into ten small whole numbers each with finite scalar quantisation."""

import torch
from data import arguments, batches, digits
from torch import nn

ODD = (
    "the code is rounded, which has no gradient: it is passed straight through; the encoder ends "
    "in tanh on purpose and its outputs take five values only"
)
_, seed = arguments(__doc__)
torch.set_num_threads(1)

NUMBERS, LEVELS = 10, 5
x, _, x_val, _ = digits(seed)


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, NUMBERS))
        self.decoder = nn.Sequential(
            nn.Linear(NUMBERS, 128), nn.GELU(), nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 64)
        )

    def code(self, pictures):
        bounded = (LEVELS // 2) * torch.tanh(self.encoder(pictures))
        return bounded + (bounded.round() - bounded).detach()

    def forward(self, pictures):
        return self.decoder(self.code(pictures) / (LEVELS // 2))


codec = Codec()
criterion = nn.MSELoss()
optimizer = torch.optim.AdamW(codec.parameters(), lr=2e-3, weight_decay=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 1200)
for step, (pictures,) in enumerate(batches(x, size=64, steps=1200, seed=seed)):
    codec.train()
    loss = criterion(codec(pictures), pictures)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 200 == 199:
        codec.eval()
        with torch.no_grad():
            val_loss = criterion(codec(x_val), x_val).item()
        print(f"step {step + 1}  loss {loss.item():.4f}  validation {val_loss:.4f}")

with torch.no_grad():
    codes = codec.code(x_val)
used = sorted({int(value) for value in codes.unique()})
mean = x.mean(0)
_, _, axes = torch.linalg.svd(x - mean, full_matrices=False)
inside = (x - mean) @ axes[:NUMBERS].T
low, high = inside.min(0).values, inside.max(0).values
places = ((x_val - mean) @ axes[:NUMBERS].T - low) / (high - low) * (LEVELS - 1)
rounded = places.round().clamp(0, LEVELS - 1) / (LEVELS - 1) * (high - low) + low
by_axes = criterion(rounded @ axes[:NUMBERS] + mean, x_val).item()
alone = criterion(mean.expand_as(x_val), x_val).item()
print(
    f"validation error: mean picture {alone:.3f}, ten rounded principal axes {by_axes:.3f}, "
    f"codec {val_loss:.3f}; values in use {used}"
)
