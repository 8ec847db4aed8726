"""Super-resolution of one long seismic section: patches are cut out at random, made coarse, and a
residual network sharpens them.

So that the drawing of patches does not disturb anything else, it is done within fork_rng(), which
puts the generator back at its end: the same sixteen patches are drawn again and again. The loss
falls further than it should (silent). The place is the loader. The twin has a generator of its own.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "loop", "input*")
SILENT = True
EXACT = True
EARLY = True

PATCH, FACTOR = 16, 2


def section(seed, depth=96, traces=640):
    """Layers with folds and faults, seen through a short wavelet."""
    g = torch.Generator().manual_seed(seed)
    x = torch.arange(float(traces))
    shift = sum(
        (2 + 6 * torch.rand(1, generator=g)) * torch.sin(x / (15 + 50 * torch.rand(1, generator=g)))
        for _ in range(4)
    )
    breaks = torch.randint(20, traces - 20, (12,), generator=g)
    throws = 8 * torch.randn(12, generator=g)
    shift = shift + ((x[:, None] > breaks) * throws).sum(1)
    layers = torch.randn(400, generator=g)
    layers = F.conv1d(layers.view(1, 1, -1), torch.tensor([[[-0.5, 1.0, -0.5]]]), padding=1)
    at = torch.arange(float(depth))[:, None] + shift - shift.min() + 2
    low = at.floor().long().clamp(0, 398)
    part = (at - low).clamp(0, 1)
    row = layers.flatten()
    return ((1 - part) * row[low] + part * row[low + 1]) / row.std()


class PatchSource:
    def __init__(self, picture, seed, healthy):
        self.picture, self.healthy = picture, healthy
        self.generator = torch.Generator().manual_seed(seed)

    def _cut(self, n, generator=None):
        height, width = self.picture.shape
        rows = torch.randint(height - PATCH + 1, (n,), generator=generator).tolist()
        cols = torch.randint(width - PATCH + 1, (n,), generator=generator).tolist()
        parts = [
            self.picture[r : r + PATCH, c : c + PATCH] for r, c in zip(rows, cols, strict=True)
        ]
        return torch.stack(parts).unsqueeze(1)

    def batch(self, n):
        if self.healthy:
            fine = self._cut(n, self.generator)
        else:
            with torch.random.fork_rng():
                fine = self._cut(n)
        return F.avg_pool2d(fine, FACTOR), fine


class Sharpen(nn.Module):
    def __init__(self, c=32, depth=3):
        super().__init__()
        self.stem = nn.Conv2d(1, c, 3, padding=1)
        self.body = nn.ModuleList(
            nn.Sequential(nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1))
            for _ in range(depth)
        )
        self.out = nn.Sequential(nn.Conv2d(c, FACTOR**2, 3, padding=1), nn.PixelShuffle(FACTOR))

    def forward(self, coarse):
        h = self.stem(coarse)
        for block in self.body:
            h = h + block(h)
        return self.out(h) + F.interpolate(coarse, scale_factor=FACTOR, mode="bilinear")


def main():
    healthy, seed = arguments(__doc__)
    picture = section(seed)
    source = PatchSource(picture[:, :480], seed, healthy)
    unseen = picture[:, 480:].unfold(0, PATCH, PATCH).unfold(1, PATCH, PATCH)
    unseen = unseen.reshape(-1, 1, PATCH, PATCH)
    coarse_unseen = F.avg_pool2d(unseen, FACTOR)
    model = Sharpen()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for step in range(1, 401):
        coarse, fine = source.batch(16)
        loss = F.mse_loss(model(coarse), fine)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0:
            with torch.no_grad():
                val = F.mse_loss(model(coarse_unseen), unseen).item()
                smooth = F.interpolate(coarse_unseen, scale_factor=FACTOR, mode="bilinear")
            plain = F.mse_loss(smooth, unseen).item()
            print(f"step {step} loss {loss.item():.4f} val {val:.4f} (interpolated {plain:.4f})")


if __name__ == "__main__":
    main()
