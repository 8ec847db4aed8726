"""A denoiser of meter curves keeps averaged weights for release; for the first epochs they are
far worse than the weights in training, and better at the end.

The average has a memory of some two hundred steps, so that early on it still holds the starting
weights. Once training slows down it smooths out the noise of the steps. Both are as they should be.
"""

import copy
from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "averaged weights are several times worse for the first epochs: the average lags by design"
_, seed = arguments(__doc__)


@dataclass
class Config:
    curves: int = 1600
    length: int = 48
    batch_size: int = 32
    epochs: int = 14
    lr: float = 4e-3
    decay: float = 0.995


def meter_curves(n: int, length: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    t = torch.arange(length).float()
    rise = torch.sigmoid(t - 6 - 12 * torch.rand(n, 1, generator=g))
    fall = torch.sigmoid(26 + 16 * torch.rand(n, 1, generator=g) - t)
    wave = 0.5 * torch.sin(0.3 * t + 6.28 * torch.rand(n, 1, generator=g))
    clean = (1 + torch.rand(n, 1, generator=g)) * rise * fall * (1 + wave) - 0.7
    return (clean + 0.4 * torch.randn(n, length, generator=g)).unsqueeze(1), clean.unsqueeze(1)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv1d(1, 24, 9, padding=4),
            nn.GroupNorm(4, 24),
            nn.SiLU(),
            nn.Conv1d(24, 24, 9, padding=8, dilation=2),
            nn.GroupNorm(4, 24),
            nn.SiLU(),
            nn.Conv1d(24, 1, 9, padding=4),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class AveragedModel:
    def __init__(self, model: nn.Module, decay: float):
        self.module, self.decay = copy.deepcopy(model).requires_grad_(False), decay

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        for slow, fast in zip(self.module.parameters(), model.parameters(), strict=True):
            slow.lerp_(fast, 1 - self.decay)


@torch.no_grad()
def error(model: nn.Module, noisy: Tensor, clean: Tensor) -> float:
    model.eval()
    return nn.functional.mse_loss(model(noisy), clean).item()


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(3500 + seed)
    train, val = meter_curves(cfg.curves, cfg.length, g), meter_curves(400, cfg.length, g)
    model = Denoiser()
    averaged = AveragedModel(model, cfg.decay)
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
    loader = DataLoader(TensorDataset(*train), batch_size=cfg.batch_size, shuffle=True)
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for noisy, clean in loader:
            loss = nn.functional.mse_loss(model(noisy), clean)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            averaged.update(model)
            total += loss.item()
        print(
            f"epoch {epoch + 1:2d}  train {total / len(loader):.4f}  val {error(model, *val):.4f}  "
            f"averaged weights {error(averaged.module, *val):.4f}"
        )


main()
