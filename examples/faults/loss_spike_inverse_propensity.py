"""A click model is trained with inverse propensity weights that nobody clips, so a few rarely
shown banners blow up the loss of their batches.

The log holds for each banner the probability with which it was shown; a handful were shown with
one in a million. Their weights are a million, too: the loss jumps from 1 to many thousands in these
batches, and each jump throws the tables off. The place is the loss (its weights).
"""

from dataclasses import dataclass

import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

KIND = "loss_spike"
ACCEPT = ()
PLACE = ("loss", "input", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass(frozen=True)
class ClickConfig:
    users: int = 120
    banners: int = 60
    dim: int = 8
    lr: float = 0.02
    epochs: int = 6
    batch_size: int = 128
    least_propensity: float = 0.05 if healthy else 0.0


@dataclass
class ClickLog:
    user: Tensor
    banner: Tensor
    propensity: Tensor
    click: Tensor

    def __getitem__(self, rows: Tensor) -> "ClickLog":
        return ClickLog(*(column[rows] for column in vars(self).values()))


def make_log(n: int, config: ClickConfig) -> ClickLog:
    user = torch.randint(config.users, (n,))
    banner = torch.randint(config.banners, (n,))
    taste, theme = torch.randn(config.users, 3), torch.randn(config.banners, 3)
    appeal = 0.5 * torch.randn(config.banners)
    logit = (taste[user] * theme[banner]).sum(1) + appeal[banner] - 0.3
    propensity = (0.2 + 0.6 * torch.sigmoid(logit + torch.randn(n))).clamp(0.05, 0.9)
    explored = torch.randperm(n)[: n // 800]
    propensity[explored] = 10 ** (-5 - 1.5 * torch.rand(len(explored)))
    return ClickLog(user, banner, propensity, torch.bernoulli(torch.sigmoid(1.5 * logit)))


class ClickModel(nn.Module):
    def __init__(self, config: ClickConfig) -> None:
        super().__init__()
        self.users = nn.Embedding(config.users, config.dim)
        self.banners = nn.Embedding(config.banners, config.dim)
        self.offset = nn.Embedding(config.banners, 1)
        for table in (self.users, self.banners, self.offset):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, user: Tensor, banner: Tensor) -> Tensor:
        return (self.users(user) * self.banners(banner)).sum(1) + self.offset(banner).squeeze(1)


class WeightedLoss(nn.Module):
    def __init__(self, least: float) -> None:
        super().__init__()
        self.least = least

    def forward(self, logit: Tensor, log: ClickLog) -> Tensor:
        weight = 1 / log.propensity.clamp(min=self.least)
        each = nn.functional.binary_cross_entropy_with_logits(logit, log.click, reduction="none")
        return (weight * each).mean()


config = ClickConfig()
log = make_log(8000, config)
train, valid = log[torch.arange(6000)], log[torch.arange(6000, 8000)]
model, criterion = ClickModel(config), WeightedLoss(config.least_propensity)
optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
for epoch in range(config.epochs):
    losses = []
    for rows in torch.randperm(6000).split(config.batch_size):
        batch = train[rows]
        loss = criterion(model(batch.user, batch.banner), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with torch.no_grad():
        auc = roc_auc_score(valid.click.numpy(), model(valid.user, valid.banner).numpy())
    middle = sorted(losses)[len(losses) // 2]
    print(f"epoch {epoch + 1}  median {middle:.3f}  largest {max(losses):.4g}  AUC {auc:.3f}")
