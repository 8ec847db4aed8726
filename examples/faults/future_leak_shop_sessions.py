"""The next event of web-shop sessions by a small transformer; its attention isn't causal.

The loss is that of every position's next event, but `is_causal` is off, so position t sees event
t+1, which it has to guess. Training and validation look wonderful; asked for the next event of a
real session that isn't over (only the prefix is known), the model fails. The place is the
attention (attn).
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "future_leak"
ACCEPT = ()
PLACE = ("blocks*", "*attn*", "input*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    sessions: int = 2200
    length: int = 20
    events: int = 20
    dim: int = 48
    heads: int = 4
    layers: int = 2
    batch_size: int = 64
    epochs: int = 9
    lr: float = 2e-3
    causal: bool = healthy


def make_sessions(cfg):
    """The next event depends on the last one and on the session's intent (shown by the first)."""
    r = np.random.default_rng(60 + seed)
    moves = r.dirichlet(np.full(cfg.events, 0.12), (3, cfg.events))
    rows = np.zeros((cfg.sessions, cfg.length + 1), dtype="int64")
    for row in rows:
        row[0] = r.integers(cfg.events)
        for t in range(cfg.length):
            row[t + 1] = r.choice(cfg.events, p=moves[row[0] % 3, row[t]])
    return torch.tensor(rows)


class Block(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.heads, self.causal = cfg.heads, cfg.causal
        self.norm1, self.norm2 = nn.LayerNorm(cfg.dim), nn.LayerNorm(cfg.dim)
        self.attn_in, self.attn_out = nn.Linear(cfg.dim, 3 * cfg.dim), nn.Linear(cfg.dim, cfg.dim)
        self.mlp = nn.Sequential(
            nn.Linear(cfg.dim, 2 * cfg.dim), nn.GELU(), nn.Linear(2 * cfg.dim, cfg.dim)
        )

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.attn_in(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.attn_out(mixed.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.norm2(x))


class SessionModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.event = nn.Embedding(cfg.events, cfg.dim)
        self.position = nn.Embedding(cfg.length, cfg.dim)
        self.blocks = nn.Sequential(*(Block(cfg) for _ in range(cfg.layers)))
        self.head = nn.Sequential(nn.LayerNorm(cfg.dim), nn.Linear(cfg.dim, cfg.events))

    def forward(self, events):
        x = self.event(events) + self.position(torch.arange(events.shape[1]))
        return self.head(self.blocks(x))


@torch.no_grad()
def evaluate(model, rows):
    model.eval()
    loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).item()
    lengths = range(2, rows.shape[1] - 1, 4)
    live = [(model(rows[:, :k])[:, -1].argmax(1) == rows[:, k]).float().mean() for k in lengths]
    return loss, torch.stack(live).mean().item()


def fit(cfg):
    rows = make_sessions(cfg)
    train, valid = rows[:-400], rows[-400:]
    model = SessionModel(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), cfg.lr, weight_decay=0.01)
    total = cfg.epochs * math.ceil(len(train) / cfg.batch_size)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min(1, (s + 1) / 20) * max(0.0, 1 - s / total)
    )
    for epoch in range(cfg.epochs):
        model.train()
        losses = []
        for part in train[torch.randperm(len(train))].split(cfg.batch_size):
            loss = F.cross_entropy(model(part[:, :-1]).flatten(0, 1), part[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        val, live = evaluate(model, valid)
        print(
            f"epoch {epoch}  train {np.mean(losses):.4f}  val {val:.4f}  live accuracy {live:.4f}"
        )


fit(Config())
