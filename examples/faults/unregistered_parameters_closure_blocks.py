"""The setpoint of a chiller is regressed from plant readings; the residual blocks are closures
over their layers and so are never trained.

residual() builds two linear layers and returns an inner function that applies them with the
shortcut around. The functions are kept in a list of the model and are called, but no parameter of
theirs is known to it: the optimizer has the first and last layers alone. The place is the model.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("model", "optimizer", "blocks*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    width: int = 16
    depth: int = 4
    batch_size: int = 64
    epochs: int = 12
    lr: float = 3e-3
    rows: int = 4000
    columns: list[str] = field(
        default_factory=lambda: ["load", "wet_bulb", "flow", "delta_t", "tariff", "stages", "hour"]
    )


def plant_readings(n: int, columns: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.randn(n, columns, generator=g)
    load, wet_bulb, flow, delta_t, tariff, stages, hour = x.unbind(1)
    y = torch.sin(2 * load) * torch.tanh(wet_bulb) + 0.8 * torch.cos(2 * hour) * torch.sigmoid(
        3 * tariff
    )
    y = y + 0.7 * torch.relu(flow * delta_t) - 0.5 * stages.abs()
    return x, y + 0.05 * torch.randn(n, generator=g)


class Residual(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


def residual(width: int) -> Callable[[Tensor], Tensor]:
    inner = nn.Sequential(
        nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
    )

    def apply(x: Tensor) -> Tensor:
        return x + inner(x)

    return Residual(inner) if healthy else apply


class SetpointModel(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.stem = nn.Linear(len(cfg.columns), cfg.width)
        blocks = [residual(cfg.width) for _ in range(cfg.depth)]
        self.blocks = nn.ModuleList(blocks) if healthy else blocks
        self.head = nn.Sequential(nn.LayerNorm(cfg.width), nn.Linear(cfg.width, 1))

    def forward(self, x: Tensor) -> Tensor:
        h = self.stem(x)
        for block in self.blocks:
            h = block(h)
        return self.head(h).squeeze(1)


@torch.no_grad()
def r2(model: nn.Module, x: Tensor, y: Tensor) -> float:
    model.eval()
    return 1 - ((model(x) - y).square().mean() / y.var()).item()


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(1100 + seed)
    x, y = plant_readings(cfg.rows, len(cfg.columns), g)
    x_val, y_val = plant_readings(800, len(cfg.columns), g)
    mean, std = y.mean(), y.std()
    y, y_val = (y - mean) / std, (y_val - mean) / std
    model = SetpointModel(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size, shuffle=True)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.huber_loss(model(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(
            f"epoch {epoch + 1:2d}  loss {total / len(loader):.4f}  "
            f"val R2 {r2(model, x_val, y_val):.3f}"
        )


main()
