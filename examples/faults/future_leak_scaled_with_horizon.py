"""Power draw of server racks is forecast 12 steps ahead; each window is scaled with its horizon,
so the inputs tell the mean of what comes.

Every window of 48 + 12 values was standardised on its own before it was cut into context and
horizon, as the levels of the racks differ. The scaled context then gives the future away. The
score is fine until the windows come in live, where only the context exists. The place is the input.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "future_leak"
ACCEPT = ("target_leak", "train_val_mismatch")
PLACE = ("input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    context: int = 48
    horizon: int = 12
    stride: int = 6
    width: int = 96
    batch_size: int = 64
    epochs: int = 10
    lr: float = 2e-3


def simulate_racks(racks: int = 16, steps: int = 1400) -> np.ndarray:
    r = np.random.default_rng(600 + seed)
    t = np.arange(steps)
    level = np.zeros((racks, steps))
    for i in range(1, steps):
        level[:, i] = 0.995 * level[:, i - 1] + r.normal(0, 0.35, racks)
    phase = r.uniform(0, 6.28, (racks, 1))
    daily = r.uniform(1.0, 2.5, (racks, 1)) * np.sin(2 * np.pi * t / 24 + phase)
    base = r.uniform(8, 40, (racks, 1))
    return base + daily + level + r.normal(0, 0.2, (racks, steps))


class Windows(Dataset):
    def __init__(self, series: np.ndarray, cfg: Config, live: bool = False):
        length = cfg.context + cfg.horizon
        starts = range(0, series.shape[1] - length + 1, cfg.stride)
        cut = np.stack([row[s : s + length] for row in series for s in starts])
        self.values = torch.tensor(cut, dtype=torch.float32)
        self.context = cfg.context
        self.seen = cfg.context if live or healthy else length

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int):
        window = self.values[index]
        mean, std = window[: self.seen].mean(), window[: self.seen].std() + 1e-3
        scaled = (window - mean) / std
        return scaled[: self.context], scaled[self.context :], std


class Forecaster(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.trend = nn.Linear(cfg.context, cfg.horizon)
        self.net = nn.Sequential(
            nn.Linear(cfg.context, cfg.width),
            nn.GELU(),
            nn.LayerNorm(cfg.width),
            nn.Linear(cfg.width, cfg.width),
            nn.GELU(),
            nn.Linear(cfg.width, cfg.horizon),
        )

    def forward(self, context: torch.Tensor) -> torch.Tensor:
        return self.trend(context) + self.net(context)


@torch.no_grad()
def kilowatts_off(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    off = [((model(c) - h).abs() * s.unsqueeze(1)).mean(1) for c, h, s in loader]
    return torch.cat(off).mean().item()


def main() -> None:
    cfg = Config()
    series = simulate_racks()
    cut = int(0.75 * series.shape[1])
    train = DataLoader(Windows(series[:, :cut], cfg), batch_size=cfg.batch_size, shuffle=True)
    val = DataLoader(Windows(series[:, cut:], cfg), batch_size=256)
    live = DataLoader(Windows(series[:, cut:], cfg, live=True), batch_size=256)
    model = Forecaster(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, cfg.epochs * len(train))
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for context, horizon, _ in train:
            loss = nn.functional.smooth_l1_loss(model(context), horizon)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(
            f"epoch {epoch + 1:2d}  train {total / len(train):.4f}  "
            f"val {kilowatts_off(model, val):.3f} kW  live {kilowatts_off(model, live):.3f} kW"
        )


main()
