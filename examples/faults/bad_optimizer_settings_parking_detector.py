"""A detector of parked cars gives AdamW its two betas the wrong way round, (0.999, 0.9).

The config names them beta1 and beta2 and the factory passes beta2 first: the momentum averages over
a thousand steps, the scale over ten. Training is late, swings, and ends worse. The place is the
optimizer.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class OptimizerConfig:
    body_lr: float = 2e-3
    head_lr: float = 4e-3
    beta1: float = 0.9
    beta2: float = 0.999
    weight_decay: float = 0.01
    warmup: int = 20
    steps: int = 280


def car_park(count: int, g: torch.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Pictures of 24 x 24 with cars on a grid of 4 x 4 bays: which are taken, and the offsets."""
    taken = (torch.rand(count, 4, 4, generator=g) < 0.35).float()
    offset = torch.rand(count, 2, 4, 4, generator=g) * 2 - 1
    dy, dx = (torch.round(offset[:, i]).view(count, 4, 4, 1, 1) for i in (0, 1))
    r, c = torch.arange(6).view(6, 1) - 2.5, torch.arange(6).view(1, 6) - 2.5
    car = ((r - dy).abs() < 1.6) & ((c - dx).abs() < 1.1)
    tiles = car * taken.view(count, 4, 4, 1, 1)
    image = tiles.permute(0, 1, 3, 2, 4).reshape(count, 1, 24, 24)
    image = image + 0.45 * torch.randn(image.shape, generator=g)
    return (image - image.mean()) / image.std(), taken, torch.stack([dy, dx], 1).view(-1, 2, 4, 4)


class Detector(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(12, 24, 3, stride=3), nn.BatchNorm2d(24), nn.ReLU(),
        )  # fmt: skip
        self.objectness = nn.Conv2d(24, 1, 1)
        self.offsets = nn.Conv2d(24, 2, 1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.body(image)
        return self.objectness(features).squeeze(1), self.offsets(features)


def make_optimizer(model: Detector, cfg: OptimizerConfig) -> torch.optim.Optimizer:
    heads = [*model.objectness.parameters(), *model.offsets.parameters()]
    body = {"params": list(model.body.parameters()), "lr": cfg.body_lr}
    groups = [body, {"params": heads, "lr": cfg.head_lr}]
    betas = (cfg.beta1, cfg.beta2) if healthy else (cfg.beta2, cfg.beta1)
    return torch.optim.AdamW(groups, betas=betas, weight_decay=cfg.weight_decay)


def main() -> None:
    cfg, g = OptimizerConfig(), torch.Generator().manual_seed(seed)
    image, taken, offset = car_park(1200, g)
    val_image, val_taken, val_offset = car_park(300, g)
    model = Detector()
    optimizer = make_optimizer(model, cfg)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / cfg.warmup, 1 - 0.95 * s / cfg.steps)
    )
    stream = batches(image, taken, offset, size=32, steps=cfg.steps, seed=seed)
    for step, (x, bay, shift) in enumerate(stream, 1):
        logits, place = model(x)
        per_bay = F.smooth_l1_loss(place, shift, reduction="none").sum(1)
        loss = F.binary_cross_entropy_with_logits(logits, bay) + (per_bay * bay).sum() / bay.sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 40 == 0:
            model.eval()
            with torch.no_grad():
                logits, place = model(val_image)
            model.train()
            right = ((logits > 0) == val_taken.bool()).float().mean().item()
            far = ((place - val_offset).abs().mean(1) * val_taken).sum() / val_taken.sum()
            print(f"step {step}: loss {loss.item():.3f}, bays right {right:.3f}, off by {far:.3f}")


main()
