"""A surrogate of a heat exchanger; the activation's name isn't in the registry, and it silently
falls back to identity.

The config asks for "swish"; the registry knows it as "silu" and `.get(name, nn.Identity)` hides
the mistake, so five Linear layers in a row are one linear map. The place is the hidden layers of
the net (blocks.*, their activation).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("blocks*", "head*", "input_proj")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

ACTIVATIONS = {
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "softplus": nn.Softplus,
}


@dataclass
class SurrogateConfig:
    width: int = 64
    depth: int = 3
    activation: str = "silu" if healthy else "swish"
    batch_size: int = 128
    epochs: int = 40
    lr: float = 2e-3
    patience: int = 15


def simulate(n: int, rng: np.random.Generator):
    """Counter-flow exchanger by the effectiveness-NTU method, with fouling; outlet temperatures and duty."""  # noqa: E501
    m_h, m_c = rng.uniform(0.3, 3.0, n), rng.uniform(0.3, 3.0, n)
    t_h, t_c = rng.uniform(60, 140, n), rng.uniform(5, 40, n)
    area, fouling = rng.uniform(1, 12, n), rng.gamma(2.0, 1e-4, n)
    c_h, c_c = 3.9e3 * m_h, 4.18e3 * m_c
    h = 1 / (1 / (900 * m_h**0.8) + 1 / (1100 * m_c**0.8) + fouling)
    c_min, c_max = np.minimum(c_h, c_c), np.maximum(c_h, c_c)
    ntu, cr = h * area / c_min, c_min / c_max
    e = np.exp(-ntu * (1 - cr))
    eff = np.where(cr > 0.999, ntu / (1 + ntu), (1 - e) / (1 - cr * e))
    q = eff * c_min * (t_h - t_c)
    y = np.stack([t_h - q / c_h, t_c + q / c_c, q / 1e3], 1)
    y *= 1 + 0.005 * rng.standard_normal(y.shape)
    return np.stack([m_h, m_c, t_h, t_c, area, fouling], 1).astype(np.float32), y.astype(np.float32)


class Surrogate(nn.Module):
    def __init__(self, cfg: SurrogateConfig, n_in: int, n_out: int):
        super().__init__()
        act = ACTIVATIONS.get(cfg.activation, nn.Identity)
        self.input_proj = nn.Linear(n_in, cfg.width)
        self.blocks = nn.ModuleList(
            nn.Sequential(act(), nn.Linear(cfg.width, cfg.width)) for _ in range(cfg.depth)
        )
        self.head = nn.Sequential(act(), nn.Linear(cfg.width, n_out))

    def forward(self, x):
        x = self.input_proj(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Trainer:
    def __init__(self, cfg: SurrogateConfig, model: nn.Module):
        self.cfg, self.model = cfg, model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-5)
        self.scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
            self.optimizer, factor=0.5, patience=4
        )
        self.best, self.bad = float("inf"), 0

    def fit(self, train: DataLoader, valid: DataLoader, scale: torch.Tensor):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            losses = []
            for x, y in train:
                loss = nn.functional.huber_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                losses.append(loss.item())
            rmse, r2 = self.evaluate(valid, scale)
            self.scheduler.step(rmse.mean())
            print(
                f"{epoch:3d} loss {np.mean(losses):.5f} val rmse hot {rmse[0]:.3f} K cold {rmse[1]:.3f} K "  # noqa: E501
                f"duty {rmse[2]:.2f} kW R2 {r2:.4f}"
            )
            if rmse.mean().item() < self.best - 1e-4:
                self.best, self.bad = rmse.mean().item(), 0
            else:
                self.bad += 1
                if self.bad >= self.cfg.patience:
                    print("early stop")
                    return

    @torch.no_grad()
    def evaluate(self, loader: DataLoader, scale: torch.Tensor):
        self.model.eval()
        pairs = [(self.model(x), y) for x, y in loader]
        pred, true = (torch.cat(part) for part in zip(*pairs, strict=False))
        r2 = 1 - ((pred - true) ** 2).sum() / ((true - true.mean(0)) ** 2).sum()
        return ((pred - true) ** 2).mean(0).sqrt() * scale, r2.item()


cfg = SurrogateConfig()
print(asdict(cfg))
x, y = simulate(6000, np.random.default_rng(seed))
x_mean, x_std, y_mean, y_std = x[:5000].mean(0), x[:5000].std(0), y[:5000].mean(0), y[:5000].std(0)
x, y = torch.from_numpy((x - x_mean) / x_std), torch.from_numpy((y - y_mean) / y_std)
train = DataLoader(TensorDataset(x[:5000], y[:5000]), cfg.batch_size, shuffle=True, drop_last=True)
valid = DataLoader(TensorDataset(x[5000:], y[5000:]), 500)
Trainer(cfg, Surrogate(cfg, 6, 3)).fit(train, valid, torch.from_numpy(y_std))
