"""A recurrent regressor of delivery durations sees batches of routes of like length, and its loss
jumps twenty-fold from step to step.

Routes are grouped by length to save padding. Long routes have more noise to carry, so the loss of
a batch follows its length. Averaged over an epoch it falls evenly, and so does validation.
"""

import random
from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

ODD = "the loss swings twenty-fold between steps: batches hold routes of like length"
_, seed = arguments(__doc__)


@dataclass
class Config:
    routes: int = 1600
    features: int = 4
    hidden: int = 24
    batch_size: int = 32
    epochs: int = 10
    lr: float = 6e-3


@dataclass
class Route:
    stops: Tensor
    duration: float


def make_routes(n: int, g: torch.Generator) -> list[Route]:
    routes = []
    for _ in range(n):
        length = int(3 + 30 * torch.rand(1, generator=g) ** 2)
        stops = torch.randn(length, 4, generator=g)
        minutes = 1 + 0.6 * stops[:, 0] + 0.5 * torch.relu(stops[:, 1]) * (stops[:, 2] > 0)
        noise = 0.35 * length**0.5 * torch.randn(1, generator=g).item()
        routes.append(Route(stops, (minutes.sum().item() + noise - 13) / 10))
    return routes


class LengthBuckets:
    def __init__(self, lengths: list[int], batch_size: int):
        self.lengths, self.batch_size = lengths, batch_size

    def __iter__(self):
        order = list(range(len(self.lengths)))
        random.shuffle(order)
        order.sort(key=lambda i: self.lengths[i])
        batches = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
        random.shuffle(batches)
        return iter(batches)


class DurationNet(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        self.rnn = nn.GRU(cfg.features, cfg.hidden, batch_first=True)
        self.stop = nn.Linear(cfg.hidden, 1)

    def forward(self, stops: list[Tensor]) -> Tensor:
        lengths = torch.tensor([len(s) for s in stops])
        packed = pack_padded_sequence(
            pad_sequence(stops, batch_first=True), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        given = torch.arange(states.shape[1]) < lengths[:, None]
        return (self.stop(states).squeeze(2) * given).sum(1) - 1.3


def collate(routes: list[Route]) -> tuple[list[Tensor], Tensor]:
    return [r.stops for r in routes], torch.tensor([r.duration for r in routes])


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(3300 + seed)
    train, val = make_routes(cfg.routes, g), make_routes(400, g)
    stops_val, duration_val = collate(val)
    buckets = LengthBuckets([len(r.stops) for r in train], cfg.batch_size)
    model = DurationNet(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-3)
    steps = cfg.epochs * (cfg.routes // cfg.batch_size)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for epoch in range(cfg.epochs):
        model.train()
        losses = []
        for rows in buckets:
            stops, duration = collate([train[i] for i in rows])
            loss = nn.functional.mse_loss(model(stops), duration)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            val_loss = nn.functional.mse_loss(model(stops_val), duration_val) / duration_val.var()
        print(
            f"epoch {epoch + 1:2d}  loss {sum(losses) / len(losses):.4f}  "
            f"batches {min(losses):.4f} to {max(losses):.3f}  val unexplained {val_loss.item():.4f}"
        )


main()
