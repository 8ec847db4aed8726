"""Pallets are located in depth images by a trainer that calls backward only in its branch for the
gradient scaler, so in bfloat16 it steps without gradients.

The branch for float16 scales, goes backward and steps. bfloat16 needs no scaler, and in the other
branch only optimizer.step() was written: all gradients are None and no weight changes. The loss
just wavers with the batches. The place is the loop (Trainer.update).
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class PalletConfig:
    precision: str = "bf16"
    lr: float = 3e-3
    epochs: int = 9


def depth_images(n: int, size: int = 16) -> tuple[Tensor, Tensor]:
    """Boxes are centre row, centre column, height and width in parts of the image."""
    centre, extent = 0.3 + 0.4 * torch.rand(n, 2), 0.2 + 0.3 * torch.rand(n, 2)
    at = (torch.arange(size) + 0.5) / size
    inside = (at[None, None] - centre[..., None]).abs() < extent[..., None] / 2
    pallet = inside[:, 0, :, None] & inside[:, 1, None, :]
    floor = at[None, :, None] * (0.5 + torch.rand(n, 1, 1))
    depth = floor + pallet * (0.8 + 0.5 * torch.rand(n, 1, 1)) + 0.15 * torch.randn(n, size, size)
    return ((depth - depth.mean()) / depth.std()).unsqueeze(1), torch.cat([centre, extent], 1)


class BoxNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(12, 16, 3, padding=1), nn.ReLU(), nn.Flatten()),
        )
        self.box = nn.Sequential(nn.Linear(16 * 64, 48), nn.ReLU(), nn.Linear(48, 4))

    def forward(self, depth: Tensor) -> Tensor:
        return self.box(self.features(depth))


class Trainer:
    def __init__(self, model: nn.Module, config: PalletConfig, steps: int) -> None:
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[config.precision]
        self.scaler = torch.amp.GradScaler("cpu") if config.precision == "fp16" else None
        self.criterion = nn.SmoothL1Loss(beta=0.1)

    def update(self, loss: Tensor) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        if self.scaler is not None:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            if healthy:
                loss.backward()
            self.optimizer.step()
        self.schedule.step()

    def epoch(self, loader: DataLoader) -> float:
        total = 0.0
        for depth, box in loader:
            with torch.autocast("cpu", dtype=self.dtype):
                predicted = self.model(depth)
            loss = self.criterion(predicted.float(), box)
            self.update(loss)
            total += loss.item()
        return total / len(loader)

    @torch.no_grad()
    def error_in_pixels(self, depth: Tensor, box: Tensor) -> float:
        return (self.model(depth) - box).abs().mean().item() * depth.shape[-1]


def main() -> None:
    config, (depth, box) = PalletConfig(), depth_images(1300)
    loader = DataLoader(TensorDataset(depth[:1000], box[:1000]), 32, shuffle=True)
    trainer = Trainer(BoxNet(), config, config.epochs * len(loader))
    for epoch in range(config.epochs):
        loss = trainer.epoch(loader)
        error = trainer.error_in_pixels(depth[1000:], box[1000:])
        print(f"epoch {epoch + 1}  loss {loss:.5f}  validation error {error:.3f} pixels")


main()
