"""Cells that are darker or brighter than their ground are segmented; the activation is given as a
class, and the block puts an identity in its place.

The convolution block follows a well-known detector: act=True means SiLU, a module is taken as it
is, and anything else becomes nn.Identity. The config says act=nn.ReLU, the class and not an
instance, so no block has an activation. The place is the model: the act of every ConvBlock.
"""

from dataclasses import dataclass
from typing import Any

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("model", "body*", "head*", "*.act")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    size: int = 24
    images: int = 800
    channels: int = 16
    act: Any = nn.ReLU() if healthy else nn.ReLU
    batch_size: int = 16
    epochs: int = 7
    lr: float = 4e-3


def make_cells(n: int, size: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    image = torch.zeros(n, size, size)
    mask = torch.zeros(n, size, size)
    for _ in range(3):
        at = 2 + (size - 4) * torch.rand(n, 2, 1, 1, generator=g)
        radius = 2 + 2 * torch.rand(n, 1, 1, generator=g)
        sign = torch.randint(0, 2, (n, 1, 1), generator=g) * 2 - 1
        inside = (((yy - at[:, 0]) ** 2 + (xx - at[:, 1]) ** 2).sqrt() < radius).float()
        image = image * (1 - inside) + sign * inside
        mask = torch.maximum(mask, inside)
    image = image + 0.45 * torch.randn(n, size, size, generator=g)
    return image.unsqueeze(1), mask.unsqueeze(1)


class ConvBlock(nn.Module):
    def __init__(self, c_in: int, c_out: int, kernel: int = 3, act: Any = True):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, kernel, padding=kernel // 2, bias=False)
        self.norm = nn.BatchNorm2d(c_out)
        if act is True:
            self.act: nn.Module = nn.SiLU()
        else:
            self.act = act if isinstance(act, nn.Module) else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.norm(self.conv(x)))


class Segmenter(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        c = cfg.channels
        self.body = nn.Sequential(
            ConvBlock(1, c, 5, act=cfg.act),
            ConvBlock(c, c, act=cfg.act),
            ConvBlock(c, c, act=cfg.act),
        )
        self.head = nn.Conv2d(c, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.body(image))


@torch.no_grad()
def dice(model: nn.Module, image: Tensor, mask: Tensor) -> float:
    model.eval()
    found = (model(image) > 0).float()
    return (2 * (found * mask).sum() / (found.sum() + mask.sum() + 1e-6)).item()


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(1200 + seed)
    image, mask = make_cells(cfg.images, cfg.size, g)
    image_val, mask_val = make_cells(200, cfg.size, g)
    model = Segmenter(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    loader = DataLoader(TensorDataset(image, mask), batch_size=cfg.batch_size, shuffle=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for xb, mb in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(xb), mb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(
            f"epoch {epoch + 1}  bce {total / len(loader):.4f}  "
            f"val dice {dice(model, image_val, mask_val):.3f}"
        )


main()
