"""A crystal-growth stage classifier has bn_momentum: None in its config, meant as the default;
the running statistics are the plain mean over all steps since the start.

The field was optional and was passed on as it was. None is no default for batch norm: it stands
for the cumulative average, in which the first steps, made with other weights, count for ever.
Training looks fine and validation lags. The place is the batch norm layers.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "batchnorm_momentum"
ACCEPT = ("train_val_mismatch",)
PLACE = ("body*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class ModelConfig:
    channels: int = 16
    blocks: int = 4
    bn_momentum: float | None = 0.1 if healthy else None


@dataclass
class TrainConfig:
    images: int = 3000
    size: int = 20
    batch_size: int = 50
    epochs: int = 7
    lr: float = 0.06


def crystals(n: int, size: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    stage = torch.randint(0, 5, (n,), generator=g)
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    image = torch.zeros(n, size, size)
    for seed_point in range(6):
        at = size * torch.rand(n, 2, 1, 1, generator=g)
        angle = 3.14 * torch.rand(n, 1, 1, generator=g)
        dy, dx = yy - at[:, 0], xx - at[:, 1]
        along, across = dy * angle.sin() + dx * angle.cos(), dy * angle.cos() - dx * angle.sin()
        present = (seed_point <= stage // 2 + 1).float()[:, None, None]
        length = (1.5 + 1.0 * stage)[:, None, None]
        needle = torch.exp(
            -((along / length) ** 4) - (across / (0.8 + 0.5 * (stage % 2))[:, None, None]) ** 2
        )
        image = image + present * needle
    light = 1 + 0.2 * torch.randn(n, 1, 1, generator=g)
    image = image * light + 0.25 * torch.randn(n, size, size, generator=g)
    return image.unsqueeze(1), stage


class CrystalNet(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        layers: list[nn.Module] = []
        before = 1
        for i in range(cfg.blocks):
            after = cfg.channels * (1 if i < 2 else 2)
            layers += [
                nn.Conv2d(before, after, 3, stride=2 if i in (1, 3) else 1, padding=1, bias=False),
                nn.BatchNorm2d(after, momentum=cfg.bn_momentum),
                nn.ReLU(),
            ]
            before = after
        self.body = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(before, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


class Trainer:
    def __init__(self, model: nn.Module, cfg: TrainConfig):
        self.model, self.cfg = model, cfg
        self.optimizer = torch.optim.SGD(
            model.parameters(), lr=cfg.lr, momentum=0.9, nesterov=True, weight_decay=5e-4
        )

    def fit(self, train: DataLoader, val: DataLoader) -> None:
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer, self.cfg.lr, self.cfg.epochs * len(train), cycle_momentum=False
        )
        for epoch in range(self.cfg.epochs):
            self.model.train()
            right = seen = total = 0.0
            for x, y in train:
                logits = self.model(x)
                loss = nn.functional.cross_entropy(logits, y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                schedule.step()
                right += (logits.argmax(1) == y).sum().item()
                total += loss.item() * len(x)
                seen += len(x)
            loss, accuracy = self.evaluate(val)
            print(
                f"epoch {epoch + 1}  train {total / seen:.4f} / {right / seen:.3f}  "
                f"val {loss:.4f} / {accuracy:.3f}"
            )

    @torch.no_grad()
    def evaluate(self, loader: DataLoader) -> tuple[float, float]:
        self.model.eval()
        logits, y = zip(*((self.model(x), y) for x, y in loader), strict=True)
        logits, y = torch.cat(logits), torch.cat(y)
        accuracy = (logits.argmax(1) == y).float().mean().item()
        return nn.functional.cross_entropy(logits, y).item(), accuracy


def main() -> None:
    cfg = TrainConfig()
    g = torch.Generator().manual_seed(2100 + seed)
    train = TensorDataset(*crystals(cfg.images, cfg.size, g))
    val = TensorDataset(*crystals(400, cfg.size, g))
    trainer = Trainer(CrystalNet(ModelConfig()), cfg)
    trainer.fit(
        DataLoader(train, batch_size=cfg.batch_size, shuffle=True), DataLoader(val, batch_size=200)
    )


main()
