"""A heatmap network finds the pupil of an eye with Accelerate; the own clipping takes the squared
norm for the norm and leaves next to no gradient.

They wanted the norm in their log and so wrote the clipping themselves: it adds up the squares of
all gradients and divides by that sum, as the root was forgotten. A gradient of norm 100 comes out
with norm 0.01 in place of 1. The place is the loop: clip_gradients().
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from accelerate import Accelerator
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    size: int = 20
    images: int = 1280
    channels: int = 12
    batch_size: int = 32
    epochs: int = 5
    lr: float = 0.03
    max_norm: float = 1.0


def make_eyes(n: int, size: int, g: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    center = 4 + (size - 8) * torch.rand(n, 2, generator=g)
    glint = 2 + (size - 4) * torch.rand(n, 2, generator=g)

    def distance(at: Tensor) -> Tensor:
        return ((yy - at[:, 0, None, None]) ** 2 + (xx - at[:, 1, None, None]) ** 2).float()

    radius = (2.0 + 1.5 * torch.rand(n, generator=g))[:, None, None]
    image = -1.5 * torch.sigmoid(3 * (radius - distance(center).sqrt()))
    image = (
        image + 1.5 * (-distance(glint) / 1.5).exp() - 1.5 * (-distance(glint.flip(1)) / 1.0).exp()
    )
    image = image + 0.4 * torch.randn(n, size, size, generator=g)
    return image.unsqueeze(1), (-distance(center) / 4).exp().unsqueeze(1), center


class HeatmapNet(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        layers: list[nn.Module] = []
        before = 1
        for _ in range(3):
            layers += [
                nn.Conv2d(before, channels, 5, padding=2),
                nn.GroupNorm(4, channels),
                nn.ReLU(),
            ]
            before = channels
        self.body = nn.Sequential(*layers)
        self.head = nn.Conv2d(channels, 1, 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.body(image))


@torch.no_grad()
def clip_gradients(parameters: Iterable[nn.Parameter], max_norm: float) -> float:
    gradients = [p.grad for p in parameters if p.grad is not None]
    norm = sum(g.pow(2).sum() for g in gradients)
    if healthy:
        norm = norm.sqrt()
    factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for g in gradients:
        g.mul_(factor)
    return float(norm)


@torch.no_grad()
def pixels_off(model: nn.Module, image: Tensor, center: Tensor) -> float:
    model.eval()
    best = model(image).flatten(1).argmax(1)
    size = image.shape[-1]
    found = torch.stack([best // size, best % size], 1).float()
    return (found - center).norm(dim=1).mean().item()


def main() -> None:
    cfg = Config()
    accelerator = Accelerator(cpu=True)
    g = torch.Generator().manual_seed(700 + seed)
    image, heat, _ = make_eyes(cfg.images, cfg.size, g)
    image_val, _, center_val = make_eyes(300, cfg.size, g)
    model = HeatmapNet(cfg.channels)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    loader = DataLoader(TensorDataset(image, heat), batch_size=cfg.batch_size, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(cfg.epochs):
        model.train()
        losses = []
        for xb, hb in loader:
            loss = nn.functional.mse_loss(model(xb), hb, reduction="sum") / len(xb)
            optimizer.zero_grad()
            accelerator.backward(loss)
            clip_gradients(model.parameters(), cfg.max_norm)
            optimizer.step()
            losses.append(loss.item())
        print(
            f"epoch {epoch + 1}  loss {sum(losses) / len(losses):.3f}  "
            f"val off by {pixels_off(model, image_val, center_val):.2f} px"
        )


main()
