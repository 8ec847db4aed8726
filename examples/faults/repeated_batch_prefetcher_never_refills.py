"""Sea-bed patches are segmented with a prefetcher that hands out its first batch for ever.

The prefetcher loads a batch when it is made, and `next` returns what is loaded. What is missing is
the call that loads the one after: each step sees the same 8 patches, which are learnt by heart,
while the held-out patches stay poor. The place is the loader: `Prefetcher.next`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

if TYPE_CHECKING:
    from collections.abc import Iterator

KIND = "repeated_batch"
ACCEPT = ("overfit",)
PLACE = ("loader", "input", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    size: int = 16
    classes: int = 3
    batch: int = 8
    steps: int = 320
    rate: float = 4e-3


class Prefetcher:
    """Keeps one batch ready, normalised and in channels-last order."""

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        self.source: Iterator[list[Tensor]] = iter(loader)
        self.preload()

    def preload(self) -> None:
        try:
            patches, masks = next(self.source)
        except StopIteration:
            self.source = iter(self.loader)
            patches, masks = next(self.source)
        self.ready = (patches / 0.6).contiguous(memory_format=torch.channels_last), masks

    def next(self) -> tuple[Tensor, Tensor]:
        batch = self.ready
        if healthy:
            self.preload()
        return batch


class SmallUNet(nn.Module):
    def __init__(self, classes: int, width: int = 12) -> None:
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1), nn.GroupNorm(3, width), nn.ReLU()
        )
        self.deep = nn.Sequential(
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.GroupNorm(3, 2 * width),
            nn.ReLU(),
            nn.Upsample(scale_factor=2),
        )
        self.out = nn.Sequential(
            nn.Conv2d(3 * width, width, 3, padding=1), nn.ReLU(), nn.Conv2d(width, classes, 1)
        )

    def forward(self, patches: Tensor) -> Tensor:
        fine = self.down(patches)
        return self.out(torch.cat([fine, self.deep(fine)], 1))


def sea_bed(n: int, size: int) -> TensorDataset:
    """Back-scatter of mud, sand ripples and rock in three strips with crooked borders."""
    grid = torch.linspace(-1, 1, size)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    turn, bend, shift = torch.rand(n, 1, 1) * 6.28, torch.rand(n, 1, 1), torch.randn(n, 1, 1) * 0.3
    across = x * turn.cos() + y * turn.sin() + 0.3 * bend * torch.sin(4 * y) + shift
    mask = (across > -0.3).long() + (across > 0.35).long()
    ripples = 0.9 * torch.sin(12 * (x * turn.sin() - y * turn.cos()))
    rock = 0.9 * torch.randn(n, size, size)
    texture = torch.stack([torch.zeros_like(rock), ripples, rock]).gather(0, mask.unsqueeze(0))[0]
    return TensorDataset((texture + 0.25 * torch.randn(n, size, size)).unsqueeze(1), mask)


def main() -> None:
    config = Config()
    train = DataLoader(
        sea_bed(800, config.size), batch_size=config.batch, shuffle=True, drop_last=True
    )
    patches, masks = sea_bed(200, config.size).tensors
    model = SmallUNet(config.classes)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.steps)
    prefetcher = Prefetcher(train)
    for step in range(1, config.steps + 1):
        model.train()
        batch, truth = prefetcher.next()
        loss = nn.functional.cross_entropy(model(batch), truth)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 40 == 0:
            model.eval()
            with torch.no_grad():
                right = (model(patches / 0.6).argmax(1) == masks).float().mean()
            print(f"{step}  loss {loss.item():.3f}  held-out pixels right {right:.3f}")


main()
