"""A model of seat upgrades stacks Linear and Dropout without any activation, so it is linear.

The builder puts Linear and Dropout one after another. Whether an offer suits a traveller is a
matter of products and distances, which a linear map cannot express. The place is the model: tower.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("tower*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class OfferConfig:
    widths: tuple[int, ...] = (64, 64, 32)
    dropout: float = 0.05
    lr: float = 2e-3
    batch_size: int = 96
    steps: int = 450


def offers(n: int, r: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Price, budget, hours of flight, legroom wish, status, party, and noise; who accepts."""
    x = r.normal(0, 1, (n, 10))
    price, budget, hours, legs, status, party = x[:, :6].T
    fits = 1.5 - 2.0 * np.abs(price - budget) + 1.5 * hours * legs - status * party
    fits = fits + hours + status
    accepted = fits - 0.8 + r.logistic(0, 0.4, n) > 0
    return torch.tensor(x, dtype=torch.float32), torch.tensor(accepted, dtype=torch.float32)


def build_tower(inputs: int, cfg: OfferConfig) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in cfg.widths:
        layers.append(nn.Linear(inputs, width))
        if healthy:
            layers.append(nn.ReLU())
        layers.append(nn.Dropout(cfg.dropout))
        inputs = width
    return nn.Sequential(*layers)


class OfferModel(nn.Module):
    def __init__(self, cfg: OfferConfig) -> None:
        super().__init__()
        self.tower = build_tower(10, cfg)
        self.accept = nn.Linear(cfg.widths[-1], 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.accept(self.tower(x)).squeeze(1)


def balanced_loader(x: torch.Tensor, y: torch.Tensor, cfg: OfferConfig) -> DataLoader:
    share = y.mean()
    weights = torch.where(y > 0, 1 / share, 1 / (1 - share))
    sampler = WeightedRandomSampler(weights, cfg.steps * cfg.batch_size)
    return DataLoader(TensorDataset(x, y), cfg.batch_size, sampler=sampler)


def main() -> None:
    cfg, r = OfferConfig(), np.random.default_rng(seed)
    x, y = offers(6000, r)
    x_val, y_val = offers(1500, r)
    model, loss_fn = OfferModel(cfg), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2 * cfg.lr, total_steps=cfg.steps)
    for step, (features, accepted) in enumerate(balanced_loader(x, y, cfg), 1):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_fn(model(features), accepted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 75 == 0:
            model.eval()
            with torch.no_grad():
                auc = roc_auc_score(y_val, model(x_val))
            model.train()
            print(f"step {step}: loss {loss.item():.3f}, held-out AUC {auc:.3f}")


main()
