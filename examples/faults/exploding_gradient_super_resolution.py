"""A super-resolution net of 30 residual blocks without batch norm, whose res_scale was left at 1.

The person dropped batch norm, as is done for this task, and made the net deep. The block has an
argument res_scale, to be 0.1 for deep nets, and 1 by default. With it each block adds its full
branch: outputs and gradients grow from block to block. The place is the residual blocks.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "exploding_gradient"
ACCEPT = ("poor_weight_init", "learning_rate_too_high")
PLACE = ("body*", "head*", "tail*", "model", "loss")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

OPTIONS = {"n_resblocks": 30, "n_feats": 12, "scale": 2, "lr": 4e-3, "steps": 400, "batch": 8}
if healthy:
    OPTIONS["res_scale"] = 0.1


def textures(n, side, generator):
    """Crossed waves behind sharp edges, in standard units."""
    grid = torch.arange(side, dtype=torch.float32)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    r = torch.rand(n, 9, 1, 1, generator=generator)
    first = torch.sin((0.2 + 0.7 * r[:, 0]) * x + (0.9 * r[:, 1] - 0.45) * y + 6 * r[:, 2])
    second = torch.sin((0.9 * r[:, 3] - 0.45) * x + (0.2 + 0.7 * r[:, 4]) * y + 6 * r[:, 5])
    edge = (x * (r[:, 6] - 0.5) + y * (r[:, 7] - 0.5) > 8 * (r[:, 8] - 0.5)).float()
    pictures = edge * first + (1 - edge) * 0.6 * second + 0.5 * edge
    return ((pictures - 0.12) / 0.6).unsqueeze(1)


def shrink(pictures):
    return F.avg_pool2d(pictures, OPTIONS["scale"])


class ResBlock(nn.Module):
    def __init__(self, feats, res_scale=1.0):
        super().__init__()
        self.branch = nn.Sequential(
            nn.Conv2d(feats, feats, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(feats, feats, 3, padding=1),
        )
        self.res_scale = res_scale

    def forward(self, x):
        return x + self.res_scale * self.branch(x)


class SuperResolver(nn.Module):
    def __init__(self, n_resblocks, n_feats, scale, res_scale=1.0, **_):
        super().__init__()
        self.head = nn.Conv2d(1, n_feats, 3, padding=1)
        self.body = nn.Sequential(*(ResBlock(n_feats, res_scale) for _ in range(n_resblocks)))
        self.tail = nn.Sequential(
            nn.Conv2d(n_feats, scale**2, 3, padding=1),
            nn.PixelShuffle(scale),
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                nn.init.zeros_(module.bias)

    def forward(self, small):
        features = self.head(small)
        return F.interpolate(small, scale_factor=2.0, mode="bicubic") + self.tail(
            self.body(features) + features
        )


def psnr(made, wanted, peak=4.0):
    return (10 * torch.log10(peak**2 / (made - wanted).square().mean())).item()


def main():
    generator = torch.Generator().manual_seed(170 + seed)
    val = textures(60, 16, generator)
    enlarged = F.interpolate(shrink(val), scale_factor=2.0, mode="bicubic")
    print(f"bicubic: {psnr(enlarged, val):.2f} dB")
    model = SuperResolver(**OPTIONS)
    optimizer = torch.optim.Adam(model.parameters(), lr=OPTIONS["lr"], betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, OPTIONS["steps"])
    running = 0.0
    for step in range(1, OPTIONS["steps"] + 1):
        model.train()
        sharp = textures(OPTIONS["batch"], 16, generator)
        loss = (model(shrink(sharp)) - sharp).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running += loss.item() / 20
        if step % 20 == 0:
            model.eval()
            with torch.no_grad():
                made = model(shrink(val))
            l1 = (made - val).abs().mean().item()
            print(f"step {step:3d}  L1 {running:10.4f}  val L1 {l1:.4f}  {psnr(made, val):.2f} dB")
            running = 0.0


if __name__ == "__main__":
    main()
