"""Do two product titles mean the same product? A siamese encoder that divides by the vector's
length.

Some offers have an empty title: all its words are padding, so the pooled vector is exactly 0 and
so is its norm. 0 / 0 is NaN, and after the first batch with such a row so is every parameter. The
place is the encoder's normalisation (tower).
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("tower*",)
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    pairs: int = 4000
    products: int = 250
    words: int = 180
    length: int = 8
    dim: int = 24
    empty: float = 0.015
    batch_size: int = 64
    epochs: int = 12
    lr: float = 3e-3


def pairs(cfg):
    r = np.random.default_rng(19 + seed)
    names = [r.choice(np.arange(1, 121), 5, replace=False) for _ in range(cfg.products)]

    def title(product):
        row = np.zeros(cfg.length, dtype="int64")
        if r.uniform() < cfg.empty:
            return row
        said = [w for w in names[product] if r.uniform() < 0.7][:5] or [names[product][0]]
        said += list(r.integers(121, cfg.words, r.integers(0, 4)))
        row[: len(said)] = r.permutation(said)
        return row

    y = r.integers(0, 2, cfg.pairs)
    left = r.integers(0, cfg.products, cfg.pairs)
    right = np.where(y == 1, left, (left + r.integers(1, cfg.products, cfg.pairs)) % cfg.products)
    a, b = np.stack([title(p) for p in left]), np.stack([title(p) for p in right])
    return torch.tensor(a), torch.tensor(b), torch.tensor(y, dtype=torch.float32)


class Tower(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.words = nn.Embedding(cfg.words, cfg.dim, padding_idx=0)
        self.project = nn.Linear(cfg.dim, cfg.dim, bias=False)

    def forward(self, title):
        v = self.project(self.words(title).sum(1))
        length = v.norm(dim=1, keepdim=True)
        return v / (length.clamp_min(1e-6) if healthy else length)


class Matcher(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tower = Tower(cfg)
        self.scale = nn.Parameter(torch.tensor(5.0))
        self.shift = nn.Parameter(torch.tensor(-2.0))

    def forward(self, a, b):
        return self.scale * (self.tower(a) * self.tower(b)).sum(1) + self.shift


@torch.no_grad()
def evaluate(model, a, b, y):
    model.eval()
    logits = model(a, b)
    loss = F.binary_cross_entropy_with_logits(logits, y).item()
    return loss, roc_auc_score(y, logits.nan_to_num())


def main(cfg):
    a, b, y = pairs(cfg)
    cut = int(0.8 * cfg.pairs)
    loader = DataLoader(
        TensorDataset(a[:cut], b[:cut], y[:cut]), cfg.batch_size, shuffle=True, drop_last=True
    )
    model = Matcher(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), cfg.lr, weight_decay=0.01)
    best, state = float("inf"), None
    for epoch in range(cfg.epochs):
        model.train()
        losses = []
        for left, right, same in loader:
            loss = F.binary_cross_entropy_with_logits(model(left, right), same)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        val, auc = evaluate(model, a[cut:], b[cut:], y[cut:])
        print(f"epoch {epoch:2d}  train {np.mean(losses):.4f}  val {val:.4f}  auc {auc:.4f}")
        if val < best:
            best, state = val, {k: v.clone() for k, v in model.state_dict().items()}
    if state is not None:
        model.load_state_dict(state)
    loss, auc = evaluate(model, a[cut:], b[cut:], y[cut:])
    print(f"best val loss {loss:.4f} auc {auc:.4f}")


main(Config())
