"""Trains a denoising auto-encoder of smooth images with float16 autocast and without any loss
scale.

The images have weights that sum to one over the whole data set and the reconstruction term has the
weight 0.01, so that each output's gradient is about 1e-8; most lie below 3e-8 and are zero in
float16. The loss stays far higher. The twin scales the loss by 2**20 and divides the gradients by
it. The place is `encoder`, `decoder`, the loss or the loop.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_underflow"
ACCEPT = ()
PLACE = ("encoder", "decoder", "loss*", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
SCALE = 2.0**20 if healthy else 1.0
RECONSTRUCTION = 0.01


def blobs(n, size=16):
    """Three soft spots per image, as one row of 256 pixels around zero."""
    grid = torch.arange(size, dtype=torch.float32)
    out = torch.zeros(n, size, size)
    for _ in range(3):
        cx, cy = 2 + (size - 4) * torch.rand(2, n, 1)
        dx, dy = (-((grid - c) ** 2) / 12 for c in (cx, cy))
        out += dx.exp()[:, None, :] * dy.exp()[:, :, None]
    return out.flatten(1)


clean, clean_val = blobs(4000), blobs(400)
mean, std = clean.mean(), clean.std()
clean, clean_val = (clean - mean) / std, (clean_val - mean) / std
noisy_val = clean_val + 0.3 * torch.randn_like(clean_val)
weight = 0.5 + torch.rand(len(clean))
weight = weight / weight.sum()
loader = DataLoader(TensorDataset(clean, weight), batch_size=64, shuffle=True)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(256, 128), nn.Tanh(), nn.Linear(128, 64), nn.Tanh(), nn.Linear(64, 16)
        )
        self.decoder = nn.Sequential(
            nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 256)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


model = AutoEncoder()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, eps=1e-12)

for epoch in range(1, 13):
    model.train()
    total = 0.0
    for xb, wb in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            out = model(xb + 0.3 * torch.randn_like(xb))
        loss = RECONSTRUCTION * (wb * (out.float() - xb).square().mean(1)).sum()
        (loss * SCALE).backward()
        for p in model.parameters():
            p.grad /= SCALE
        optimizer.step()
        total += loss.item()
    if epoch % 2 == 0:
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(noisy_val), clean_val).item()
        print(f"epoch {epoch:2d} train {total / RECONSTRUCTION:.4f} val {val:.4f}")
