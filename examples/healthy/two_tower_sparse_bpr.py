"""A two-tower recommender with sparse embeddings and BPR on sampled negatives.

Looks odd: two optimizers (SparseAdam for the id tables, AdamW for the towers), gradients that are
sparse and empty for most rows, popular pairs that come back within an epoch since clicks are
drawn by weight with replacement, random negatives that may be positives, and a loss that starts
at ln 2 and stays far above 0. It's sound: the recall on held-out clicks gets to nearly three
times that of popularity.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

ODD = "two optimizers, sparse gradients, and popular pairs that come back within an epoch"
_, seed = arguments(__doc__)

USERS, ITEMS, GROUPS, CLICKS = 800, 500, 20, 32_000


def clicks(rng: np.random.Generator):
    centre = rng.normal(size=(GROUPS, 8))
    group = rng.integers(0, GROUPS, ITEMS)
    item = centre[group] + 0.5 * rng.normal(size=(ITEMS, 8))
    user = rng.normal(size=(USERS, 8)) * 1.0
    popular = 0.6 * rng.normal(size=ITEMS)
    logits = user @ item.T * 0.9 + popular
    prob = np.exp(logits - logits.max(1, keepdims=True))
    prob /= prob.sum(1, keepdims=True)
    u = rng.integers(0, USERS, CLICKS)
    i = np.array([rng.choice(ITEMS, p=prob[k]) for k in u])
    pairs, count = np.unique(np.stack([u, i], 1), axis=0, return_counts=True)
    order = rng.permutation(len(pairs))
    return pairs[order], count[order], group


class Towers(nn.Module):
    def __init__(self, group: np.ndarray, dim: int = 24):
        super().__init__()
        self.user_id = nn.Embedding(USERS, dim, sparse=True)
        self.item_id = nn.Embedding(ITEMS, dim, sparse=True)
        self.group = nn.Embedding(GROUPS, 8)
        self.register_buffer("group_of", torch.tensor(group))
        self.user_tower = nn.Sequential(nn.Linear(dim, 48), nn.ReLU(), nn.Linear(48, dim))
        self.item_tower = nn.Sequential(nn.Linear(dim + 8, 48), nn.ReLU(), nn.Linear(48, dim))
        self.item_bias = nn.Embedding(ITEMS, 1, sparse=True)
        for table in (self.user_id, self.item_id):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.item_bias.weight)

    def users(self, u):
        e = self.user_id(u)
        return e + self.user_tower(e)

    def items(self, i):
        e = self.item_id(i)
        return e + self.item_tower(torch.cat([e, self.group(self.group_of[i])], -1))

    def score(self, u, i):
        return (self.users(u) * self.items(i)).sum(-1) + self.item_bias(i).squeeze(-1)


pairs, count, group = clicks(np.random.default_rng(seed))
cut = int(0.9 * len(pairs))
train, held_out = torch.tensor(pairs[:cut]), torch.tensor(pairs[cut:])
sampler = WeightedRandomSampler(
    torch.tensor(count[:cut], dtype=torch.double) ** 0.5, len(train), replacement=True
)
loader = DataLoader(TensorDataset(train[:, 0], train[:, 1]), 256, sampler=sampler, drop_last=True)

model = Towers(group)
tables = [model.user_id.weight, model.item_id.weight, model.item_bias.weight]
dense = [p for p in model.parameters() if all(p is not t for t in tables)]
optimizers = [
    torch.optim.SparseAdam(tables, lr=4e-3),
    torch.optim.AdamW(dense, lr=2e-3, weight_decay=1e-2),
]

seen = torch.zeros(USERS, ITEMS, dtype=torch.bool)
seen[train[:, 0], train[:, 1]] = True


def recall_at(scores: torch.Tensor, k: int = 20) -> float:
    top = scores.masked_fill(seen, -1e9).topk(k, 1).indices
    return (top[held_out[:, 0]] == held_out[:, 1:]).any(1).float().mean().item()


by_popularity = torch.bincount(train[:, 1], minlength=ITEMS).float().expand(USERS, -1)
print(f"{len(train)} pairs, recall@20 by popularity {recall_at(by_popularity):.4f}")
best, bad = 0.0, 0
for epoch in range(12):
    model.train()
    losses = []
    for u, i in loader:
        j = torch.randint(0, ITEMS, i.shape)
        loss = -F.logsigmoid(model.score(u, i) - model.score(u, j)).mean()
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.item())
    model.eval()
    with torch.no_grad():
        scores = (
            model.users(torch.arange(USERS)) @ model.items(torch.arange(ITEMS)).T
            + model.item_bias.weight.T
        )
    recall = recall_at(scores)
    print(f"epoch {epoch} bpr {np.mean(losses):.4f} recall@20 {recall:.4f}")
    best, bad = (recall, 0) if recall > best else (best, bad + 1)
    if bad == 2:
        break
