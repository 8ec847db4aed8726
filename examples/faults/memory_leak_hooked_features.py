"""A denoising net cleans pictures of discs. A forward hook collects the middle layer's features for
a figure to be drawn after the training.

The list gets every batch's feature map, with the graph that hangs on it, and is never emptied: the
process grows by some megabytes with every step. The learning itself is untouched. The place is the
middle layer with the hook.
"""

import resource

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("middle*", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Denoiser(nn.Module):
    def __init__(self, c=16):
        super().__init__()
        self.inp = nn.Conv2d(1, c, 3, padding=1)
        self.middle = nn.Conv2d(c, c, 3, padding=1)
        self.out = nn.Conv2d(c, 1, 3, padding=1)

    def forward(self, x):
        return x + self.out(F.gelu(self.middle(F.gelu(self.inp(x)))))


class FeatureRecorder:
    def __init__(self, module):
        self.features = []
        module.register_forward_hook(self.record)

    def record(self, module, inputs, output):
        if healthy:
            self.features = [output.detach()]
        else:
            self.features.append(output)


def discs(n, g, size=24):
    i = torch.arange(size).float()
    c = torch.rand(2, n, 1, 1, generator=g) * size
    r = 3 + 5 * torch.rand(n, 1, 1, generator=g)
    clean = torch.sigmoid(
        r - ((i[None, None] - c[0]) ** 2 + (i[None, :, None] - c[1]) ** 2).sqrt()
    )[:, None]
    return clean + 0.3 * torch.randn(clean.shape, generator=g), clean


g = torch.Generator().manual_seed(33 + seed)
noisy, clean = discs(640, g)
noisy_val, clean_val = discs(64, g)
model = Denoiser()
recorder = FeatureRecorder(model.middle)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(noisy)).split(32):
        loss = F.mse_loss(model(noisy[rows]), clean[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 20
    model.eval()
    with torch.no_grad():
        val = F.mse_loss(model(noisy_val), clean_val)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"epoch {epoch}: train {total:.4f} val {val.item():.4f} peak {peak} MB")
