"""Which flats go above the city's rent cap, from a table with embeddings; a validation in the
middle of each epoch leaves the net in eval mode.

`Trainer._validate` calls model.eval(), and train() is called once, before the loop over epochs.
As a sanity check runs first and validation every 10 steps, the whole training takes place in eval
mode: no dropout, batch norm with its initial statistics. The place is the loop (Trainer). The
twin calls model.train() after each validation.
"""

import itertools
from dataclasses import dataclass, field

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class TrainArgs:
    epochs: int = 16
    batch_size: int = 64
    lr: float = 3e-3
    weight_decay: float = 1e-2
    eval_every: int = 10
    dropout: float = 0.4
    hidden: list[int] = field(default_factory=lambda: [256, 128, 64])


def make_rents(n: int, world, draw):
    town_level, town_slope = world.normal(0, 0.35, 80), world.normal(0.7, 0.12, 80)
    kind_level = world.normal(0, 0.2, 9)
    town, kind, floor = draw.integers(0, 80, n), draw.integers(0, 9, n), draw.integers(0, 12, n)
    area, rooms = draw.gamma(6, 12, n) + 15, draw.integers(1, 7, n)
    built, dist = draw.uniform(1900, 2025, n), draw.gamma(2, 3, n)
    noise_db, energy = draw.normal(55, 7, n), draw.gamma(5, 25, n)
    log_rent = (
        town_level[town]
        + town_slope[town] * np.log(area)
        + kind_level[kind]
        + 0.015 * floor
        - 0.05 * np.sqrt(dist)
        + 0.25 * np.cos((built - 1900) / 125 * np.pi * 2)
        - 0.004 * (noise_db - 55)
        - 0.0012 * energy
        + 0.08 * np.sin(rooms)
        + draw.normal(0, 0.2, n)
    )
    x = np.stack([area, rooms, built, dist, noise_db, energy, *draw.normal(0, 1, (6, n))], 1)
    return x, np.stack([town, kind, floor], 1), log_rent


class TabularModel(nn.Module):
    """As in fastai: embeddings with dropout, batch norm of the continuous columns, LinBnDrop blocks."""  # noqa: E501

    def __init__(self, emb_szs, n_cont: int, hidden: list[int], p: float):
        super().__init__()
        self.embeds = nn.ModuleList([nn.Embedding(c, s) for c, s in emb_szs])
        self.emb_drop, self.bn_cont = nn.Dropout(p / 2), nn.BatchNorm1d(n_cont)
        sizes = [sum(s for _, s in emb_szs) + n_cont, *hidden]
        self.layers = nn.Sequential(
            *(
                nn.Sequential(
                    nn.Linear(a, b, bias=False), nn.ReLU(), nn.BatchNorm1d(b), nn.Dropout(p)
                )
                for a, b in itertools.pairwise(sizes)
            )
        )
        self.out = nn.Linear(sizes[-1], 1)

    def forward(self, cats, cont):
        e = torch.cat([emb(cats[:, i]) for i, emb in enumerate(self.embeds)], 1)
        return self.out(self.layers(torch.cat([self.emb_drop(e), self.bn_cont(cont)], 1))).squeeze(
            1
        )


class Trainer:
    def __init__(self, model, args: TrainArgs, train: DataLoader, valid: DataLoader):
        self.model, self.args, self.train_dl, self.valid_dl = model, args, train, valid
        self.opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
        self.sched = torch.optim.lr_scheduler.OneCycleLR(
            self.opt, args.lr, total_steps=args.epochs * len(train)
        )
        self.step, self.log = 0, []

    @torch.no_grad()
    def _validate(self) -> tuple[float, float]:
        self.model.eval()
        loss = hits = 0.0
        for cats, cont, y in self.valid_dl:
            score = self.model(cats, cont)
            loss += nn.functional.binary_cross_entropy_with_logits(score, y, reduction="sum").item()
            hits += ((score > 0) == (y > 0.5)).sum().item()
        if healthy:
            self.model.train()
        return loss / len(self.valid_dl.dataset), hits / len(self.valid_dl.dataset)

    def fit(self):
        self.model.train()
        print("sanity check: val loss {:.4f} acc {:.4f}".format(*self._validate()))
        for epoch in range(self.args.epochs):
            losses = []
            for cats, cont, y in self.train_dl:
                loss = nn.functional.binary_cross_entropy_with_logits(self.model(cats, cont), y)
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
                self.sched.step()
                losses.append(loss.item())
                self.step += 1
                if self.step % self.args.eval_every == 0:
                    self.log.append((self.step, self._validate()))
            if epoch % 2 == 1:
                print(
                    f"epoch {epoch} train loss {np.mean(losses):.4f} val loss {self.log[-1][1][0]:.4f} acc {self.log[-1][1][1]:.4f}"  # noqa: E501
                )
        print("final val loss {:.4f} acc {:.4f}".format(*self._validate()))


args = TrainArgs()
world = np.random.default_rng(seed)
x, cats, y = make_rents(3600, world, np.random.default_rng(seed + 1))
n = 2000
mu, sd = x[:n].mean(0), x[:n].std(0)
x = torch.tensor((x - mu) / sd, dtype=torch.float32)
y = torch.tensor(y > np.quantile(y[:n], 0.6), dtype=torch.float32)
cats = torch.tensor(cats)
train = DataLoader(
    TensorDataset(cats[:n], x[:n], y[:n]), args.batch_size, shuffle=True, drop_last=True
)
valid = DataLoader(TensorDataset(cats[n:], x[n:], y[n:]), 400)
Trainer(
    TabularModel([(80, 16), (9, 5), (12, 6)], 12, args.hidden, args.dropout), args, train, valid
).fit()
