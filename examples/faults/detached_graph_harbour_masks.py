"""A radar segmenter detaches its encoder's features, so the encoder is never trained.

The features go into a list as f.detach(), meant to save memory as for a frozen backbone, but the
encoder was to be learnt from nothing. Only the decoder moves. The place is the model: encoder.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_graph"
ACCEPT = ("step_without_gradient",)
PLACE = ("encoder*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    channels: tuple[int, ...] = (8, 12, 16)
    lr: float = 8e-3
    epochs: int = 7


def radar(count: int, g: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Speckle of 24 x 24; ships are diagonal one way, waves the other; the ships are wanted."""
    row, column = torch.arange(24).view(1, 24, 1), torch.arange(24).view(1, 1, 24)
    ships, waves = torch.zeros(2, count, 24, 24, dtype=torch.bool)
    for echo in range(6):
        y, x = (torch.randint(3, 21, (count, 1, 1), generator=g) for _ in range(2))
        dy, dx = row - y, column - x
        along, across = (dy + dx, dy - dx) if echo % 2 else (dy - dx, dy + dx)
        target = ships if echo % 2 else waves
        target |= (along.abs() <= 6) & (across.abs() <= 1)
    waves &= ~ships
    image = (ships | waves) * 1.4 + 0.5 * torch.randn(count, 24, 24, generator=g)
    return ((image - image.mean()) / image.std()).unsqueeze(1), ships.float()


def stage(inputs: int, outputs: int, stride: int) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs), nn.ReLU())


class RadarNet(nn.Module):
    def __init__(self, channels: tuple[int, ...]) -> None:
        super().__init__()
        a, b, c = channels
        self.encoder = nn.ModuleList([stage(1, a, 1), stage(a, b, 2), stage(b, c, 2)])
        self.decoder = nn.ModuleList([nn.Conv2d(b + c, 8, 1), nn.Conv2d(a + 8, 8, 1)])
        self.mask = nn.Conv2d(8, 1, 1)

    def features(self, image: torch.Tensor) -> list[torch.Tensor]:
        found = []
        for layer in self.encoder:
            image = layer(image)
            found.append(image if healthy else image.detach())
        return found

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        fine, middle, x = self.features(image)
        for skip, layer in zip((middle, fine), self.decoder, strict=False):
            x = F.relu(layer(torch.cat([F.interpolate(x, scale_factor=2), skip], 1)))
        return self.mask(x).squeeze(1)


def iou(logits: torch.Tensor, ships: torch.Tensor) -> float:
    found = logits > 0
    return ((found & ships.bool()).sum() / (found | ships.bool()).sum()).item()


def main() -> None:
    cfg, g = Config(), torch.Generator().manual_seed(seed)
    train, (val_image, val_ships) = radar(720, g), radar(150, g)
    loader, model = DataLoader(TensorDataset(*train), 24, True), RadarNet(cfg.channels)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, cfg.epochs * len(loader))
    weight = torch.tensor(2.0)
    for epoch in range(cfg.epochs):
        model.train()
        for image, ships in loader:
            loss = F.binary_cross_entropy_with_logits(model(image), ships, pos_weight=weight)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 3.0)
            optimizer.step()
            schedule.step()
        model.eval()
        with torch.no_grad():
            score = iou(model(val_image), val_ships)
        print(f"epoch {epoch}: loss {loss.item():.3f}, held-out IoU of ships {score:.3f}")


main()
