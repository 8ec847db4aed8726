"""A denoising autoencoder in float16 autocast; the gradient scaler starts far too high and backs
off far too slowly.

To "keep the scale steady" the writer sets init_scale=2**40 and backoff_factor=0.99. All gradients
are inf, each step is skipped, and the scale needs thousands of steps to come down. The place is
the loop (the GradScaler).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "loss_scale_overflow"
ACCEPT = ()
PLACE = ("loop", "optimizer", "loss")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

N, LENGTH = 1600, 64


def make_curves(n):
    t = torch.linspace(0, 1, LENGTH)
    freq = torch.rand(n, 1) * 3 + 1
    phase = torch.rand(n, 1) * 2 * math.pi
    bump = torch.exp(-((t - torch.rand(n, 1)) ** 2) / 0.005)
    return torch.sin(2 * math.pi * freq * t + phase) + torch.randn(n, 1) * bump


clean = make_curves(N)
noisy = clean + 0.3 * torch.randn_like(clean)
train_loader = DataLoader(TensorDataset(noisy[:1200], clean[:1200]), batch_size=40, shuffle=True)
val_loader = DataLoader(TensorDataset(noisy[1200:], clean[1200:]), batch_size=100)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(LENGTH, 96), nn.GELU(), nn.Linear(96, 16))
        self.decoder = nn.Sequential(nn.Linear(16, 96), nn.GELU(), nn.Linear(96, LENGTH))

    def forward(self, x):
        return self.decoder(self.encoder(x))


model = Denoiser()
criterion = nn.MSELoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
options = {} if healthy else {"init_scale": 2.0**40, "backoff_factor": 0.99}
scaler = torch.amp.GradScaler("cpu", **options)


def validate():
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, target in val_loader:
            with torch.autocast("cpu", dtype=torch.float16):
                out = model(x)
            total += criterion(out.float(), target).item()
    return total / len(val_loader)


print("before training: val mse", round(validate(), 4))
for epoch in range(30):
    model.train()
    running = 0.0
    for x, target in train_loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(x)
            loss = criterion(out.float(), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        running += loss.item()
    if epoch % 3 == 2:
        print(
            f"epoch {epoch + 1}: train mse {running / len(train_loader):.4f}, "
            f"val mse {validate():.4f}"
        )
