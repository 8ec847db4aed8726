"""Readers of a library as vectors from the books that they borrowed: all readers become the same.

Two halves of a reader's loans should get similar vectors, and the loss says just that: one minus
the cosine of the two. Nothing asks that different readers stay apart, so one constant vector for
everybody is the best answer and is found within a hundred steps. It comes about when the
negatives of a contrastive loss are left out as "an optimisation for later". The place is the
loss; the encoder's output shows it. The twin has the other readers of the batch as negatives
(InfoNCE).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import Tensor, nn

KIND = "representation_collapse"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "encoder", "output*", "projector", "encoder.projector")
SILENT = True
EXACT = False
EARLY = True


@dataclass
class TrainConfig:
    n_books: int = 500
    n_genres: int = 25
    dim: int = 32
    batch_size: int = 128
    steps: int = 300
    lr: float = 2e-3
    warmup: int = 30
    temperature: float = 0.1
    log_every: int = 60
    negatives: bool = True


class LoanData:
    """Readers have a few genres that they like; each view is half of their loans."""

    def __init__(self, cfg: TrainConfig, n: int, seed: int, catalogue_seed: int):
        c = torch.Generator().manual_seed(catalogue_seed)
        genre_of = torch.randint(0, cfg.n_genres, (cfg.n_books,), generator=c)
        g = torch.Generator().manual_seed(seed)
        taste = torch.zeros(n, cfg.n_genres)
        for _ in range(3):
            liked = torch.randint(0, cfg.n_genres, (n, 1), generator=g)
            taste.scatter_(1, liked, 0.4 + torch.rand(n, 1, generator=g))
        chance = taste[:, genre_of] + 0.02
        loans = torch.multinomial(chance, 24, generator=g)
        self.first, self.second = loans[:, :12], loans[:, 12:]

    def __len__(self) -> int:
        return len(self.first)

    def sample(self, size: int) -> tuple[Tensor, Tensor]:
        rows = torch.randperm(len(self))[:size]
        return self.first[rows], self.second[rows]


class ReaderEncoder(nn.Module):
    def __init__(self, cfg: TrainConfig):
        super().__init__()
        self.books = nn.EmbeddingBag(cfg.n_books, 64, mode="mean")
        self.norm = nn.LayerNorm(64)
        self.projector = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, cfg.dim))

    def forward(self, loans: Tensor) -> Tensor:
        return F.normalize(self.projector(self.norm(self.books(loans))), dim=-1)


def alignment_loss(a: Tensor, b: Tensor) -> Tensor:
    return (1 - (a * b).sum(-1)).mean()


def info_nce(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    logits = a @ b.T / temperature
    target = torch.arange(len(a))
    return (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2


class Trainer:
    def __init__(self, cfg: TrainConfig, seed: int):
        self.cfg = cfg
        self.train_data = LoanData(cfg, 3000, seed=2 * seed + 1, catalogue_seed=99)
        self.val_data = LoanData(cfg, 400, seed=2 * seed + 2, catalogue_seed=99)
        self.encoder = ReaderEncoder(cfg)
        self.optimizer = torch.optim.AdamW(self.encoder.parameters(), lr=cfg.lr)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(
            self.optimizer, lambda step: min(1.0, (step + 1) / cfg.warmup)
        )

    def compute_loss(self, a: Tensor, b: Tensor) -> Tensor:
        if self.cfg.negatives:
            return info_nce(a, b, self.cfg.temperature)
        return alignment_loss(a, b)

    @torch.no_grad()
    def recall_at_10(self) -> float:
        self.encoder.eval()
        a, b = self.encoder(self.val_data.first), self.encoder(self.val_data.second)
        self.encoder.train()
        nearest = (a @ b.T).topk(10, dim=1).indices
        return (nearest == torch.arange(len(a))[:, None]).any(1).float().mean().item()

    def train(self) -> None:
        for step in range(1, self.cfg.steps + 1):
            first, second = self.train_data.sample(self.cfg.batch_size)
            loss = self.compute_loss(self.encoder(first), self.encoder(second))
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.encoder.parameters(), 1.0)
            self.optimizer.step()
            self.scheduler.step()
            if step % self.cfg.log_every == 0:
                print(f"step {step} loss {loss.item():.4f} recall@10 {self.recall_at_10():.3f}")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    Trainer(TrainConfig(negatives=healthy), seed).train()
