"""A pyramid segmenter of weeds keeps its lateral and smoothing convolutions in Python lists.

model.parameters() knows the backbone and the head only. The convolutions between them stay as
they were drawn, and would be missing from a saved state_dict. The place is the model: lateral
and smooth.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("model", "lateral*", "smooth*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    channels: tuple[int, ...] = (8, 16, 16)
    lr: float = 6e-3
    steps: int = 240


def field_pictures(count: int, g: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Soil, round crops and cross-shaped weeds of two sizes on 24 x 24 pixels, two colours."""
    row, column = torch.arange(24).view(1, 24, 1), torch.arange(24).view(1, 1, 24)
    mask = torch.zeros(count, 24, 24, dtype=torch.int64)
    for plant in range(5):
        y, x = (torch.randint(3, 21, (count, 1, 1), generator=g) for _ in range(2))
        size = torch.randint(2, 5, (count, 1, 1), generator=g)
        dy, dx = (row - y).abs(), (column - x).abs()
        weed = (torch.minimum(dy, dx) < 1) & (dy + dx <= size + 1)
        covered = weed if plant % 2 else dy**2 + dx**2 <= size**2
        mask = torch.where(covered, 1 + plant % 2, mask)
    green = (mask > 0).float()
    noise = 0.45 * torch.randn(count, 2, 24, 24, generator=g)
    image = torch.stack([green, -0.5 * green], 1) + noise
    return (image - image.mean()) / image.std(), mask


class PyramidSegmenter(nn.Module):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        sizes = (2, *cfg.channels)
        self.stages = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3, stride, 1), nn.BatchNorm2d(b), nn.ReLU())
            for a, b, stride in zip(sizes, cfg.channels, (1, 2, 2), strict=False)
        )
        lateral = [nn.Conv2d(c, 6, 1) for c in cfg.channels]
        smooth = [nn.Conv2d(6, 6, 3, padding=1) for _ in cfg.channels]
        self.lateral = nn.ModuleList(lateral) if healthy else lateral
        self.smooth = nn.ModuleList(smooth) if healthy else smooth
        self.head = nn.Conv2d(6, 3, 1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        levels, top = [], None
        for stage in self.stages:
            image = stage(image)
            levels.append(image)
        for level, lateral, smooth in zip(
            levels[::-1], self.lateral[::-1], self.smooth[::-1], strict=False
        ):
            above = 0 if top is None else F.interpolate(top, scale_factor=2)
            top = F.relu(smooth(lateral(level) + above))
        return self.head(top)


def plant_iou(logits: torch.Tensor, mask: torch.Tensor) -> float:
    pairs = [(logits.argmax(1) == c, mask == c) for c in (1, 2)]
    return sum(((a & b).sum() / (a | b).sum()).item() for a, b in pairs) / 2


def main() -> None:
    cfg, g = Config(), torch.Generator().manual_seed(seed)
    (image, mask), (val_image, val_mask) = field_pictures(800, g), field_pictures(150, g)
    model = PyramidSegmenter(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.steps)
    stream = batches(image, mask, size=24, steps=cfg.steps, seed=seed)
    for step, (x, y) in enumerate(stream, 1):
        loss = F.cross_entropy(model(x), y, weight=torch.tensor([1.0, 2.0, 3.0]))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        schedule.step()
        if step % 40 == 0:
            model.eval()
            with torch.no_grad():
                iou = plant_iou(model(val_image), val_mask)
            model.train()
            print(f"step {step}: loss {loss.item():.3f}, held-out IoU of plants {iou:.3f}")


main()
