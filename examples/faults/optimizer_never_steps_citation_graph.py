"""Topics of papers in a citation graph by a two-layer graph network; `optimizer.step()` is
missing.

The loop clears the gradients, runs backward and clips them, and the line that makes the step was
lost when the clipping was put in. No parameter ever changes. The place is the loop (or the
optimizer).
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Config:
    papers: int = 900
    topics: int = 5
    words: int = 120
    hidden: int = 32
    epochs: int = 180
    lr: float = 0.005
    weight_decay: float = 3e-3
    clip: float = 5.0


def citations(cfg):
    """Papers cite their own topic nine times as often as others; few words tell the topic."""
    r = np.random.default_rng(33 + seed)
    topic = r.integers(0, cfg.topics, cfg.papers)
    chance = np.where(topic[:, None] == topic[None], 0.018, 0.002)
    links = np.triu(r.uniform(size=chance.shape) < chance, 1)
    links = links + links.T + np.eye(cfg.papers)
    use = r.dirichlet(np.full(cfg.words, 0.6), cfg.topics) * 0.35 + 0.65 / cfg.words
    words = np.stack([r.multinomial(25, use[k]) for k in topic]) > 0
    degree = links.sum(1) ** -0.5
    adjacency = degree[:, None] * links * degree[None]
    order = r.permutation(cfg.papers)
    train, valid = order[:300], order[300:600]
    x = words - words[train].mean(0)
    return (
        torch.tensor(adjacency, dtype=torch.float32),
        torch.tensor(x, dtype=torch.float32),
        torch.tensor(topic),
        torch.tensor(train),
        torch.tensor(valid),
    )


class GraphNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.first = nn.Linear(cfg.words, cfg.hidden)
        self.second = nn.Linear(cfg.hidden, cfg.topics)
        self.dropout = nn.Dropout(0.5)

    def forward(self, x, adjacency):
        h = F.relu(adjacency @ self.first(self.dropout(x)))
        return adjacency @ self.second(self.dropout(h))


@torch.no_grad()
def evaluate(model, x, adjacency, topic, nodes):
    model.eval()
    logits = model(x, adjacency)[nodes]
    loss = F.cross_entropy(logits, topic[nodes]).item()
    return loss, (logits.argmax(1) == topic[nodes]).float().mean().item()


def fit(cfg):
    adjacency, x, topic, train, valid = citations(cfg)
    model = GraphNet(cfg)
    optimizer = torch.optim.Adam(model.parameters(), cfg.lr, weight_decay=cfg.weight_decay)
    best, state = float("inf"), None
    for epoch in range(cfg.epochs):
        model.train()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, adjacency)[train], topic[train])
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), cfg.clip)
        if healthy:
            optimizer.step()
        val_loss, accuracy = evaluate(model, x, adjacency, topic, valid)
        if epoch % 25 == 0:
            print(f"{epoch:4d} train {loss.item():.4f} val {val_loss:.4f} accuracy {accuracy:.4f}")
        if val_loss < best:
            best = val_loss
            state = {k: v.clone() for k, v in model.state_dict().items()}
    model.load_state_dict(state)
    loss, accuracy = evaluate(model, x, adjacency, topic, valid)
    print(f"best val loss {loss:.4f} accuracy {accuracy:.4f}")


fit(Config())
