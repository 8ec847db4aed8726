"""A small U-shaped network removes noise from images, as in diffusion models: it predicts the
noise."""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

ODD = "the loss falls quickly to a floor that noise sets, targets are new at each step"

_, seed = arguments(__doc__)
x, _, _, _ = images(seed)


class Denoiser(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.enter = nn.Conv2d(2, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.leave = nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, noisy, level):
        h = F.silu(self.enter(torch.cat([noisy, level.expand_as(noisy)], 1)))
        low = F.silu(self.up(F.silu(self.down(h))))
        return self.leave(torch.cat([h, low], 1))


model = Denoiser()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for (clean,) in batches(x, size=32, steps=160, seed=seed):
    level = torch.rand(len(clean), 1, 1, 1)
    noise = torch.randn_like(clean)
    noisy = level.cos() * clean + level.sin() * noise
    loss = F.mse_loss(model(noisy, level), noise)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
