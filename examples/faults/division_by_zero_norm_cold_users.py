"""Click-through model over pooled browsing histories: the epsilon of the RMS norm fell out of its
root.

When the norm was rewritten to use `rsqrt`, the closing bracket moved: the epsilon is now added to
the reciprocal root, not to the mean square. A visitor without any history pools to the zero vector,
0 times infinity is NaN, and the first batch with such a visitor ends the training. The place is the
module `norm`. The twin has the epsilon under the root.
"""

import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("norm",)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
ITEMS, FACTORS, VISITS = 60, 3, 9000


def logs(g):
    """(history, candidate, clicked): tastes are shared factors; 2 % of the visitors are new."""
    items = torch.randn(ITEMS, FACTORS, generator=g)
    rows = []
    taste = torch.randn(VISITS, FACTORS, generator=g)
    near = taste @ items.T + 0.7 * torch.randn(VISITS, ITEMS, generator=g)
    lengths = torch.randint(4, 13, (VISITS,), generator=g)
    lengths[torch.rand(VISITS, generator=g) < 0.02] = 0
    order = near.topk(15, dim=1).indices
    candidates = torch.randint(0, ITEMS, (VISITS,), generator=g)
    liking = (taste * items[candidates]).sum(1) + 0.5 * torch.randn(VISITS, generator=g)
    for row in range(VISITS):
        pick = torch.randperm(15, generator=g)[: lengths[row]]
        rows.append(
            ((order[row, pick] + 1).tolist(), candidates[row] + 1, float(liking[row] > 0.8))
        )
    return rows


def collate(rows):
    longest = max(1, *(len(history) for history, _, _ in rows))
    padded = torch.zeros(len(rows), longest, dtype=torch.long)
    for i, (history, _, _) in enumerate(rows):
        padded[i, : len(history)] = torch.tensor(history, dtype=torch.long)
    return padded, torch.stack([c for _, c, _ in rows]), torch.tensor([y for *_, y in rows])


class RMSNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, h):
        square = h.pow(2).mean(-1, keepdim=True)
        scale = torch.rsqrt(square + self.eps) if healthy else torch.rsqrt(square) + self.eps
        return h * scale * self.gain


class Clicks(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.history = nn.EmbeddingBag(ITEMS + 1, width, mode="sum", padding_idx=0)
        self.candidate = nn.Embedding(ITEMS + 1, width)
        self.norm = RMSNorm(width)
        self.mlp = nn.Sequential(nn.Linear(3 * width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, history, candidate):
        user, item = self.norm(self.history(history)), self.candidate(candidate)
        return self.mlp(torch.cat([user, item, user * item], -1)).squeeze(-1)


rows = logs(torch.Generator().manual_seed(seed))
train = DataLoader(rows[:7500], 64, shuffle=True, collate_fn=collate, drop_last=True)
held = DataLoader(rows[7500:], 500, collate_fn=collate)
model = Clicks()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.1)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(5):
    model.train()
    total = 0.0
    for history, candidate, clicked in train:
        optimizer.zero_grad()
        loss = criterion(model(history, candidate), clicked)
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        scored = [(model(h, c), y) for h, c, y in held]
    logits, truth = (torch.cat(part) for part in zip(*scored, strict=False))
    auc = roc_auc_score(truth, logits.nan_to_num())
    print(
        f"epoch {epoch} loss {total / len(train):.4f} val loss {criterion(logits, truth):.4f} "
        f"validation AUC {auc:.3f}"
    )
