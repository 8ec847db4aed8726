"""A ranker of job offers is trained on whole lists with a likelihood of the order; its normaliser
exponentiates the scores by hand, which overflows.

The loss takes log(cumsum(exp(score))) from the end of the list. The same score is also fitted to
the rating from 0 to 120 that people gave, so that good offers pass 88 once the fit gets better;
exp() is then infinite in float32 and the loss infinite or NaN. The place is the loss.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unstable_log_softmax"
ACCEPT = ("loss_spike",)
PLACE = ("loss",)
SILENT = False
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    lists: int = 1200
    offers: int = 8
    features: int = 12
    width: int = 48
    batch_size: int = 32
    epochs: int = 12
    lr: float = 3e-3
    order_weight: float = 0.2


def make_lists(n: int, cfg: Config, g: torch.Generator) -> tuple[Tensor, ...]:
    person = torch.randn(n, cfg.features, generator=g)
    offer = torch.randn(n, cfg.offers, cfg.features, generator=g)
    mix = torch.randn(cfg.features, cfg.features, generator=torch.Generator().manual_seed(5))
    fit = (torch.tanh(person @ mix / 2).unsqueeze(1) * offer).sum(2)
    fit = fit + offer[..., 0] * offer[..., 1] + 0.3 * torch.randn(n, cfg.offers, generator=g)
    return person, offer, (60 + 6 * fit).clamp(0, 120)


class Tower(nn.Module):
    def __init__(self, features: int, width: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(features, width), nn.GELU(), nn.LayerNorm(width), nn.Linear(width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


class OfferRanker(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.person = Tower(cfg.features, cfg.width)
        self.offer = Tower(cfg.features, cfg.width)
        self.quality = nn.Linear(cfg.width, 1)

    def forward(self, person: Tensor, offer: Tensor) -> Tensor:
        offered = self.offer(offer)
        match = (self.person(person).unsqueeze(1) * offered).mean(2)
        return 60 + 6 * (match + self.quality(offered).squeeze(2))


class OrderLikelihood(nn.Module):
    def forward(self, score: Tensor, rating: Tensor) -> Tensor:
        ordered = score.gather(1, rating.argsort(1, descending=True))
        backwards = ordered.flip(1)
        if healthy:
            normaliser = backwards.logcumsumexp(1).flip(1)
        else:
            normaliser = backwards.exp().cumsum(1).log().flip(1)
        return (normaliser - ordered).mean()


@torch.no_grad()
def pairs_right(model: nn.Module, person: Tensor, offer: Tensor, rating: Tensor) -> float:
    model.eval()
    score = model(person, offer)
    higher = rating.unsqueeze(2) > rating.unsqueeze(1)
    agree = (score.unsqueeze(2) > score.unsqueeze(1)) == higher
    above = torch.triu(torch.ones_like(higher[0]), 1)
    return agree[:, above].float().mean().item()


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(2200 + seed)
    train, val = make_lists(cfg.lists, cfg, g), make_lists(400, cfg, g)
    model, criterion = OfferRanker(cfg), OrderLikelihood()
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-2)
    loader = DataLoader(TensorDataset(*train), batch_size=cfg.batch_size, shuffle=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        model.train()
        total = 0.0
        for person, offer, rating in loader:
            score = model(person, offer)
            fitted = nn.functional.smooth_l1_loss(score / 6, rating / 6)
            loss = fitted + cfg.order_weight * criterion(score, rating)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            total += loss.item()
        print(
            f"epoch {epoch + 1:2d}  loss {total / len(loader):.4f}  "
            f"val pairs right {pairs_right(model, *val):.3f}"
        )


main()
