"""A segmenter of sealing rings has blocks of convolution and norm only, with no activation.

The encoder and the decoder are strided and transposed convolutions with batch norm; between them
nothing bends, so the whole net is one linear filter of the image. The place is the model: the
blocks.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("down*", "up*", "block*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    width: int = 12
    lr: float = 0.05
    epochs: int = 8


def rings(count: int, g: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """A ring, brighter or darker than its ground, with a cut; the mask is the ring without it."""
    row, column = torch.arange(24).view(1, 24, 1), torch.arange(24).view(1, 1, 24)
    y, x = (8 + 8 * torch.rand(count, 1, 1, generator=g) for _ in range(2))
    radius = 4 + 3 * torch.rand(count, 1, 1, generator=g)
    distance = ((row - y) ** 2 + (column - x) ** 2).sqrt()
    angle = torch.atan2(row - y, column - x)
    cut = 6.28 * torch.rand(count, 1, 1, generator=g) - 3.14
    ring = ((distance - radius).abs() < 1.5) & (torch.cos(angle - cut) < 0.9)
    sign = torch.randint(0, 2, (count, 1, 1), generator=g) * 2 - 1
    image = sign * ring * 1.5 + 0.4 * torch.randn(count, 24, 24, generator=g)
    return (image / image.std()).unsqueeze(1), ring.float()


class Block(nn.Module):
    def __init__(self, conv: nn.Module, channels: int) -> None:
        super().__init__()
        self.conv, self.norm = conv, nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(x))
        return F.leaky_relu(x, 0.1) if healthy else x


class RingNet(nn.Module):
    def __init__(self, w: int) -> None:
        super().__init__()
        self.down1 = Block(nn.Conv2d(1, w, 3, padding=1), w)
        self.down2 = Block(nn.Conv2d(w, 2 * w, 4, stride=2, padding=1), 2 * w)
        self.middle = Block(nn.Conv2d(2 * w, 2 * w, 3, padding=1), 2 * w)
        self.up = Block(nn.ConvTranspose2d(2 * w, w, 4, stride=2, padding=1), w)
        self.out = nn.Conv2d(2 * w, 1, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        fine = self.down1(image)
        coarse = self.up(self.middle(self.down2(fine)))
        return self.out(torch.cat([fine, coarse], 1)).squeeze(1)


def dice_loss(logits: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    p = logits.sigmoid()
    overlap = (p * mask).sum((1, 2))
    return 1 - (2 * overlap / (p.sum((1, 2)) + mask.sum((1, 2)) + 1)).mean()


def main() -> None:
    cfg, g = Config(), torch.Generator().manual_seed(seed)
    train, (val_image, val_mask) = rings(600, g), rings(150, g)
    loader = DataLoader(TensorDataset(*train), 24, shuffle=True)
    model = RingNet(cfg.width)
    optimizer = torch.optim.SGD(model.parameters(), cfg.lr, momentum=0.9, nesterov=True)
    steps = cfg.epochs * len(loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, steps)
    for epoch in range(cfg.epochs):
        for image, mask in loader:
            logits = model(image)
            loss = F.binary_cross_entropy_with_logits(logits, mask) + dice_loss(logits, mask)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            dice = 1 - dice_loss(model(val_image), val_mask).item()
        model.train()
        print(f"epoch {epoch}: loss {loss.item():.3f}, held-out Dice {dice:.3f}")


main()
