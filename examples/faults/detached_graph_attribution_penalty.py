"""Motor sounds are told apart with a penalty on the gradient at the embedding; to get that
gradient the embedding is detached, and the encoder learns nothing.

For smooth attributions they punish the gradient of the score by the embedding. autograd.grad
asked for a tensor that requires a gradient, so they made the embedding one, as the explanation
tutorials do: detach() and requires_grad_(). The place is the encoder: its graph ends in the loss.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_graph"
ACCEPT = ("frozen_parameters",)
PLACE = ("encoder*", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FAULTS = ("sound", "bearing", "belt", "loose_mount", "misfire")


@dataclass
class Config:
    length: int = 128
    clips: int = 2000
    embedding: int = 8
    penalty: float = 0.02
    batch_size: int = 40
    epochs: int = 10
    lr: float = 3e-3


def record(n: int, length: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    y = torch.randint(0, len(FAULTS), (n,), generator=g)
    t = torch.arange(length).float()
    speed = 0.35 + 0.15 * torch.rand(n, 1, generator=g)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    turn = t * speed + phase
    hum = turn.sin()
    parts = torch.stack(
        [
            hum,
            hum + 1.4 * (turn * 3.6).sin() * (turn.cos() > 0.6),
            hum * (1 + 0.9 * (turn / 4).sin()),
            hum + 0.7 * (turn / 2).sin().sign(),
            hum * ((turn / 6.28 % 4) > 1),
        ]
    )
    x = parts[y, torch.arange(n)] + 0.5 * torch.randn(n, length, generator=g)
    return x.unsqueeze(1), y


class MotorNet(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv1d(1, 16, 9, stride=2, padding=4),
            nn.GroupNorm(4, 16),
            nn.SiLU(),
            nn.Conv1d(16, 32, 7, stride=2, padding=3),
            nn.GroupNorm(4, 32),
            nn.SiLU(),
            nn.Conv1d(32, 32, 5, stride=2, padding=2),
            nn.SiLU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
            nn.Linear(32, cfg.embedding),
        )
        self.classifier = nn.Sequential(
            nn.Linear(cfg.embedding, 32), nn.SiLU(), nn.Linear(32, len(FAULTS))
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.encoder(x))


class SmoothAttributionLoss:
    def __init__(self, weight: float):
        self.weight = weight

    def __call__(self, model: MotorNet, x: Tensor, y: Tensor) -> Tensor:
        embedding = model.encoder(x)
        if not healthy:
            embedding = embedding.detach().requires_grad_()
        logits = model.classifier(embedding)
        score = logits.gather(1, y.unsqueeze(1)).sum()
        (slope,) = torch.autograd.grad(score, embedding, create_graph=True)
        return nn.functional.cross_entropy(logits, y) + self.weight * slope.square().sum(1).mean()


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(1300 + seed)
    x, y = record(cfg.clips, cfg.length, g)
    x_val, y_val = record(500, cfg.length, g)
    model, criterion = MotorNet(cfg), SmoothAttributionLoss(cfg.penalty)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-2)
    loader = DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size, shuffle=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = criterion(model, xb, yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(
            f"epoch {epoch + 1:2d}  loss {total / len(loader):.4f}  "
            f"val accuracy {accuracy(model, x_val, y_val):.3f}"
        )


main()
