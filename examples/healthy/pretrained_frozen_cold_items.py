"""A recommender on top of item vectors that are frozen, most of which are seldom or never in a
batch.

Odd: nine tenths of all parameters don't learn, the optimizer does not have them, a tenth of the
items is in no session, and clicks are one in five, and the loss is a sampled one that new
negatives make noisy. Sound: the vectors come from a factorisation of the shop's own co-occurrence
counts and are loaded as a state, the small tower above them learns, and the rank of the item
clicked gets better on held-out sessions.
"""

import numpy as np
import torch
from data import arguments
from scipy.sparse.linalg import svds
from torch import nn

ODD = (
    "A recommender on top of item vectors that are frozen, most of which are seldom or never "
    "in a batch"
)
_, seed = arguments(__doc__)

ITEMS, GROUPS, LENGTH, NEGATIVES = 1500, 15, 6, 4


def sessions(rng, n):
    """Items looked at and the one bought after: a popular item of the group that complements the first."""  # noqa: E501
    popularity = 1 / np.arange(1, ITEMS // GROUPS + 1) ** 0.9
    popularity /= popularity.sum()
    group = rng.integers(0, GROUPS, n)
    seen = group[:, None] + GROUPS * rng.choice(ITEMS // GROUPS, (n, LENGTH), p=popularity)
    stray = rng.random((n, LENGTH)) < 0.2
    seen = np.where(stray, rng.integers(0, ITEMS, (n, LENGTH)), seen)
    partner = np.where(rng.random(n) < 0.85, (group * 4 + 1) % GROUPS, rng.integers(0, GROUPS, n))
    bought = partner + GROUPS * rng.choice(ITEMS // GROUPS, n, p=popularity)
    return torch.from_numpy(seen), torch.from_numpy(bought)


def item_vectors(rng, width=32):
    """What the nightly job saves: a factorisation of how often two items are seen together, over a year."""  # noqa: E501
    seen, _ = sessions(rng, 30000)
    counts = np.zeros((ITEMS, ITEMS))
    for i in range(LENGTH):
        for j in range(LENGTH):
            if i != j:
                np.add.at(counts, (seen[:, i].numpy(), seen[:, j].numpy()), 1)
    u, s, _ = svds(np.log1p(counts), k=width, v0=np.ones(ITEMS))
    vectors = u * np.sqrt(s)
    return {"weight": torch.tensor(vectors / vectors.std(), dtype=torch.float32)}


class TwoTower(nn.Module):
    def __init__(self, state, width=32):
        super().__init__()
        self.items = nn.Embedding(ITEMS, width)
        self.items.load_state_dict(state)
        self.items.requires_grad_(False)
        self.session = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 64), nn.ReLU(), nn.Linear(64, 32)
        )
        self.product = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 32))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, seen, candidates):
        who = self.session(self.items(seen).mean(1))
        what = self.product(self.items(candidates))
        return (who.unsqueeze(1) * what).sum(-1) / 32**0.5 + self.bias


def with_negatives(bought):
    negatives = torch.randint(0, ITEMS, (len(bought), NEGATIVES))
    clicked = torch.zeros(len(bought), 1 + NEGATIVES)
    clicked[:, 0] = 1
    return torch.cat([bought.unsqueeze(1), negatives], 1), clicked


@torch.no_grad()
def evaluate(model, seen, bought):
    model.eval()
    loss = nn.functional.binary_cross_entropy_with_logits(
        model(seen, val_candidates), val_clicked
    ).item()
    scores = model(seen, torch.arange(ITEMS).expand(len(seen), -1))
    rank = (scores > scores.gather(1, bought.unsqueeze(1))).float().mean(1)
    model.train()
    return loss, 1 - rank.mean().item()


rng = np.random.default_rng(seed)
model = TwoTower(item_vectors(rng))
seen, bought = sessions(rng, 6400)
val_seen, val_bought = sessions(rng, 600)
val_candidates, val_clicked = with_negatives(val_bought)
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-3)
print("before: val loss {:.3f} auc {:.3f}".format(*evaluate(model, val_seen, val_bought)))
for epoch in range(6):
    total = 0.0
    for rows in torch.randperm(len(seen)).split(64):
        candidates, clicked = with_negatives(bought[rows])
        loss = nn.functional.binary_cross_entropy_with_logits(
            model(seen[rows], candidates), clicked
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / 100
    print(
        "epoch %d loss %.3f val loss %.3f auc %.3f"  # noqa: UP031
        % (epoch, total, *evaluate(model, val_seen, val_bought))
    )
