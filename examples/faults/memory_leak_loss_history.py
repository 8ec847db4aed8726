"""Denoising of engine sounds; the list of validation losses keeps graphs alive.

For a curve at the end the validation loss is taken every few steps and put into a list, as the
tensor it is. Each holds on to its graph with all activations of that pass, which no backward pass
frees, so that the memory grows until a long run is killed. The results themselves are right.
The place is the loop, where the history is kept.
The twin takes that loss without gradients.
"""

import resource

import torch
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def engine_sounds(n, length, g):
    t = torch.arange(length) / length
    pitch = 3 + 8 * torch.rand(n, 1, generator=g)
    phase = 6.283 * torch.rand(n, 1, generator=g)
    clean = torch.sin(6.283 * pitch * t + phase) + 0.4 * torch.sin(12.566 * pitch * t)
    return clean.unsqueeze(1), (clean + 0.5 * torch.randn(n, length, generator=g)).unsqueeze(1)


class Denoiser(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.down = nn.Sequential(nn.Conv1d(1, channels, 9, padding=4), nn.GELU())
        self.middle = nn.Sequential(nn.Conv1d(channels, channels, 9, padding=4), nn.GELU())
        self.up = nn.Conv1d(channels, 1, 9, padding=4)

    def forward(self, x):
        return self.up(self.middle(self.down(x)))


g = torch.Generator().manual_seed(seed)
clean, noisy = engine_sounds(640, 128, g)
clean_val, noisy_val = engine_sounds(100, 128, g)
model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
history = []

for epoch in range(9):
    for step, rows in enumerate(torch.randperm(len(clean)).split(32)):
        loss = nn.functional.mse_loss(model(noisy[rows]), clean[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 2 == 1:
            with torch.set_grad_enabled(not healthy):
                history.append(nn.functional.mse_loss(model(noisy_val), clean_val))
    if epoch % 3 == 2:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        val = history[-1].item()
        print(f"epoch {epoch + 1}: train {loss.item():.4f} val {val:.4f} memory {peak} MB")
