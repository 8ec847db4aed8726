"""A churn Trainer's warm-up steps in a callback nobody registered, so the rate stays at 1 %.

The schedule starts at a hundredth of the rate; the callback that would raise it is defined but
not in the Trainer's list. The loss creeps down at 1 % of the learning rate. The place is the loop:
the scheduler.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "schedule_never_steps"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("learning_rate", "loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class Config:
    lr: float = 4e-3
    warmup: int = 40
    batch_size: int = 64
    epochs: int = 10


def app_users(n: int, r: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    x = r.normal(0, 1, (n, 14))
    bored = x[:, 0] * x[:, 1] - np.abs(x[:, 2]) + x[:, 3] + np.sin(2 * x[:, 4]) + x[:, 5] * x[:, 6]
    gone = bored + 0.8 + r.logistic(0, 0.3, n) > 0
    return torch.tensor(x, dtype=torch.float32), torch.tensor(gone, dtype=torch.float32)


class Callback:
    def on_step(self, trainer: "Trainer") -> None: ...

    def on_epoch(self, trainer: "Trainer", epoch: int) -> None: ...


class ScheduleStep(Callback):
    def on_step(self, trainer: "Trainer") -> None:
        trainer.schedule.step()


class Validation(Callback):
    def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.x, self.y = x, y

    def on_epoch(self, trainer: "Trainer", epoch: int) -> None:
        with torch.no_grad():
            auc = roc_auc_score(self.y, trainer.model(self.x).squeeze(1))
        print(f"epoch {epoch}: loss {trainer.loss:.3f}, held-out AUC {auc:.3f}")


class Trainer:
    def __init__(self, model: nn.Module, cfg: Config, steps: int, calls: list[Callback]) -> None:
        self.model, self.cfg, self.calls, self.loss = model, cfg, calls, 0.0
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
        warm = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.01, total_iters=cfg.warmup)
        cool = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps - cfg.warmup)
        self.schedule = torch.optim.lr_scheduler.SequentialLR(
            self.optimizer, [warm, cool], [cfg.warmup]
        )

    def fit(self, loader: DataLoader) -> None:
        loss_fn = nn.BCEWithLogitsLoss()
        for epoch in range(self.cfg.epochs):
            for x, y in loader:
                loss = loss_fn(self.model(x).squeeze(1), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.loss = loss.item()
                for call in self.calls:
                    call.on_step(self)
            for call in self.calls:
                call.on_epoch(self, epoch)


def main() -> None:
    cfg, r = Config(), np.random.default_rng(seed)
    train, val = app_users(4000, r), app_users(1000, r)
    loader = DataLoader(TensorDataset(*train), cfg.batch_size, shuffle=True)
    layers = [nn.Linear(14, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)]
    model = nn.Sequential(*layers)
    callbacks: list[Callback] = [Validation(*val)]
    if healthy:
        callbacks.insert(0, ScheduleStep())
    Trainer(model, cfg, cfg.epochs * len(loader), callbacks).fit(loader)


main()
