"""A model of meal orders accumulates eight micro-batches by backward() without dividing by eight.

Each micro-batch's mean loss is added to the gradients in full, so SGD's steps are eight times as
long as the learning rate was tuned for. The place is the loop: the loss before
backward() should be divided by eight.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "accumulation_not_averaged"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("loop", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    micro_batch: int = 16
    accumulate: int = 8
    lr: float = 0.06
    momentum: float = 0.8
    epochs: int = 12


def orders(n: int, r: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Twelve features of an order: how long it takes, and whether it is cancelled."""
    x = r.normal(0, 1, (n, 12))
    minutes = x[:, 0] + np.abs(x[:, 1]) * x[:, 2] + np.sin(2 * x[:, 3]) + 0.5 * x[:, 4] ** 2
    risk = 1.5 * x[:, 5] * x[:, 6] + x[:, 7] + 0.7 * minutes + r.logistic(0, 0.5, n)
    minutes = minutes + 0.3 * r.normal(size=n)
    parts = (x, (minutes - 0.5) / 1.9, risk > 0.4)
    x, minutes, cancelled = (torch.tensor(part, dtype=torch.float32) for part in parts)
    return x, minutes, cancelled


class OrderModel(nn.Module):
    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(12, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.minutes, self.cancelled = nn.Linear(width, 1), nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        h = self.trunk(x)
        return self.minutes(h).squeeze(1), self.cancelled(h).squeeze(1)


class Trainer:
    def __init__(self, model: OrderModel, cfg: Config) -> None:
        self.model, self.cfg = model, cfg
        self.optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=cfg.momentum)

    def loss(self, batch: list[torch.Tensor]) -> torch.Tensor:
        x, minutes, cancelled = batch
        guess, logit = self.model(x)
        risk = F.binary_cross_entropy_with_logits(logit, cancelled)
        return risk + F.mse_loss(guess, minutes)

    def epoch(self, loader: DataLoader) -> float:
        seen = 0.0
        for i, batch in enumerate(loader, 1):
            loss = self.loss(batch)
            seen += loss.item()
            if healthy:
                loss = loss / self.cfg.accumulate
            loss.backward()
            if i % self.cfg.accumulate == 0:
                self.optimizer.step()
                self.optimizer.zero_grad()
        return seen / len(loader)

    @torch.no_grad()
    def validate(self, x: torch.Tensor, minutes: torch.Tensor, cancelled: torch.Tensor) -> str:
        guess, logit = self.model(x)
        right = ((logit > 0) == cancelled.bool()).float().mean().item()
        return f"minutes MSE {F.mse_loss(guess, minutes):.3f}, cancelled right {right:.3f}"


def main() -> None:
    cfg, r = Config(), np.random.default_rng(seed)
    train, val = orders(4096, r), orders(1000, r)
    trainer = Trainer(OrderModel(), cfg)
    loader = DataLoader(TensorDataset(*train), cfg.micro_batch, shuffle=True, drop_last=True)
    for epoch in range(cfg.epochs):
        loss = trainer.epoch(loader)
        print(f"epoch {epoch}: loss {loss:.3f}, held-out {trainer.validate(*val)}")


main()
