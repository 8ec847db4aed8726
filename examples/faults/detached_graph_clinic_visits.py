"""A risk model rebuilds its pooled visits with torch.tensor, which cuts off the visit encoder.

The pooled numbers are collected as Python lists and made into a new tensor, so no gradient reaches
the encoder: it stays random and only the head learns. The place is the model: encoder, without
gradients.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "detached_graph"
ACCEPT = ("step_without_gradient",)
PLACE = ("encoder*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

Patient = tuple[torch.Tensor, float]


@dataclass(frozen=True)
class Config:
    measures: int = 16
    width: int = 12
    batch_size: int = 64
    epochs: int = 9
    encoder_lr: float = 6e-3
    head_lr: float = 3e-3


def patients(n: int, cfg: Config, r: np.random.Generator) -> list[Patient]:
    """One to five visits of sixteen measures; some combinations of two at a visit are bad signs."""
    people = []
    for _ in range(n):
        visits = r.normal(0, 1, (int(r.integers(1, 6)), cfg.measures))
        signs = 1.5 * visits[:, 0] * visits[:, 1] + np.maximum(visits[:, 2] + visits[:, 3], 0)
        ill = signs.mean() - 0.5 + 0.15 * r.logistic() > 0
        people.append((torch.tensor(visits, dtype=torch.float32), float(ill)))
    return people


class Cohort(Dataset):
    def __init__(self, people: list[Patient]) -> None:
        self.people = people

    def __len__(self) -> int:
        return len(self.people)

    def __getitem__(self, i: int) -> Patient:
        return self.people[i]


def collate(people: list[Patient]) -> tuple[torch.Tensor, list[int], torch.Tensor]:
    visits, ill = zip(*people, strict=False)
    return torch.cat(visits), [len(v) for v in visits], torch.tensor(ill)


class VisitModel(nn.Module):
    def __init__(self, cfg: Config) -> None:
        super().__init__()
        hidden = nn.Linear(cfg.measures, 48)
        self.encoder = nn.Sequential(hidden, nn.ReLU(), nn.Linear(48, cfg.width), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(cfg.width, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, visits: torch.Tensor, counts: list[int]) -> torch.Tensor:
        pooled = [part.mean(0) for part in self.encoder(visits).split(counts)]
        if not healthy:
            return self.head(torch.tensor([mean.tolist() for mean in pooled])).squeeze(1)
        return self.head(torch.stack(pooled)).squeeze(1)


def main() -> None:
    cfg, r = Config(), np.random.default_rng(seed)
    train = DataLoader(Cohort(patients(2400, cfg, r)), cfg.batch_size, True, collate_fn=collate)
    visits, counts, ill = collate(patients(600, cfg, r))
    model, loss_fn = VisitModel(cfg), nn.BCEWithLogitsLoss()
    encoder_group = {"params": model.encoder.parameters(), "lr": cfg.encoder_lr}
    head_group = {"params": model.head.parameters(), "lr": cfg.head_lr}
    optimizer = torch.optim.AdamW([encoder_group, head_group], weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs * len(train))
    for epoch in range(cfg.epochs):
        for x, lengths, y in train:
            loss = loss_fn(model(x, lengths), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        with torch.no_grad():
            auc = roc_auc_score(ill, model(visits, counts))
        print(f"epoch {epoch}: loss {loss.item():.3f}, held-out AUC {auc:.3f}")


main()
