"""Counterfeit bills are told from good ones with a margin loss and sharpness-aware steps; once a
batch has no error left, its gradient is zero and the step divides by its norm.

The optimizer climbs by rho * gradient / norm before the real gradient is taken. The margin loss is
exactly zero when all bills of a batch are outside the margin, so that 0 / 0 makes every weight
NaN, in the first or second epoch of a good run. The place is the optimizer.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("optimizer", "*")
SILENT = False
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    bills: int = 2400
    batch_size: int = 32
    epochs: int = 7
    lr: float = 0.01
    rho: float = 0.05
    eps: float = 1e-12 if healthy else 0.0


def photograph(n: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    y = torch.randint(0, 2, (n,), generator=g).float() * 2 - 1
    line = torch.arange(32).float()
    pitch = torch.where(y > 0, 0.9, 0.78).unsqueeze(1) + 0.02 * torch.randn(n, 1, generator=g)
    phase = 6.28 * torch.rand(n, 1, generator=g)
    print_lines = (pitch * line + phase).sin()
    ink = torch.where(y > 0, 1.0, 0.85).unsqueeze(1)
    x = ink * print_lines + 0.5 * torch.randn(n, 32, generator=g)
    return x.unsqueeze(1), y


class BillNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 16, 9, padding=4),
            nn.GroupNorm(4, 16),
            nn.SiLU(),
            nn.Conv1d(16, 32, 9, padding=4),
            nn.GroupNorm(4, 32),
            nn.SiLU(),
            nn.AdaptiveMaxPool1d(1),
            nn.Flatten(),
        )
        self.score = nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.score(self.features(x)).squeeze(1)


class SharpnessAware:
    def __init__(
        self, parameters: Iterable[nn.Parameter], base: torch.optim.Optimizer, cfg: Config
    ):
        self.parameters, self.base = list(parameters), base
        self.rho, self.eps = cfg.rho, cfg.eps
        self.moves: list[Tensor] = []

    @torch.no_grad()
    def climb(self) -> None:
        norm = torch.stack([p.grad.norm() for p in self.parameters]).norm()
        self.moves = [self.rho * p.grad / (norm + self.eps) for p in self.parameters]
        for p, move in zip(self.parameters, self.moves, strict=True):
            p.add_(move)
        self.base.zero_grad()

    @torch.no_grad()
    def descend(self) -> None:
        for p, move in zip(self.parameters, self.moves, strict=True):
            p.sub_(move)
        self.base.step()
        self.base.zero_grad()


def margin_loss(score: Tensor, y: Tensor) -> Tensor:
    return torch.relu(1 - y * score).mean()


@torch.no_grad()
def accuracy(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    return ((model(x) > 0) == (y > 0)).float().mean().item()


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(2300 + seed)
    x, y = photograph(cfg.bills, g)
    x_val, y_val = photograph(400, g)
    model = BillNet()
    base = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
    optimizer = SharpnessAware(model.parameters(), base, cfg)
    loader = DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size, shuffle=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(base, cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = margin_loss(model(xb), yb)
            loss.backward()
            optimizer.climb()
            margin_loss(model(xb), yb).backward()
            optimizer.descend()
            scheduler.step()
            total += loss.item()
        print(
            f"epoch {epoch + 1}  loss {total / len(loader):.4f}  "
            f"val accuracy {accuracy(model, x_val, y_val):.3f}"
        )


main()
