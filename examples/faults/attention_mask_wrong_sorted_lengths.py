"""Hand-written self-attention over padded event lists; the batch's lengths are sorted for the mask,
the rows are not.

The collate function sorts the lengths by habit from pack_padded_sequence, but leaves the rows where
they were, so each row is masked by another row's length: real events are hidden and padding is
read. Accuracy is far below what is possible. The twin sorts rows and labels too. The place is the
loader, `attention` or the input.
"""

import math
import random

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("loader", "attention", "input*")
SILENT = True
EXACT = True
EARLY = True

EVENTS, MAX = 12, 24
healthy, seed = arguments(__doc__)


def make_rows(n):
    """The class says whether more events of the kinds 1-3 than of the kinds 4-6 took place."""
    rows = []
    while len(rows) < n:
        events = [random.randint(1, EVENTS - 1) for _ in range(random.randint(6, MAX))]
        more = sum(e <= 3 for e in events) - sum(4 <= e <= 6 for e in events)
        if more:
            rows.append((events, int(more > 0)))
    return rows


def collate(rows):
    x = torch.zeros(len(rows), MAX, dtype=torch.long)
    for i, (events, _) in enumerate(rows):
        x[i, : len(events)] = torch.tensor(events)
    y = torch.tensor([label for _, label in rows])
    lengths = torch.tensor([len(events) for events, _ in rows])
    lengths, order = lengths.sort(descending=True)
    if healthy:
        x, y = x[order], y[order]
    mask = torch.arange(MAX) < lengths.unsqueeze(1)
    return x, mask, y


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, mask):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[-1])
        scores = scores.masked_fill(~mask.unsqueeze(1), -1e9)
        return self.out(scores.softmax(-1) @ v)


class EventNet(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.embed = nn.Embedding(EVENTS, dim)
        self.attention = Attention(dim)
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 64), nn.ReLU(), nn.Linear(64, 2))

    def forward(self, x, mask):
        h = self.embed(x)
        h = self.norm(h + self.attention(h, mask))
        weight = mask.unsqueeze(-1).float()
        return self.mlp((h * weight).sum(1) / weight.sum(1))


train_loader = DataLoader(make_rows(4000), batch_size=50, shuffle=True, collate_fn=collate)
val_loader = DataLoader(make_rows(1000), batch_size=100, collate_fn=collate)
model = EventNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 8)
for epoch in range(8):
    model.train()
    total = 0.0
    for x, mask, y in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, mask), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    val = right = 0
    with torch.no_grad():
        for x, mask, y in val_loader:
            out = model(x, mask)
            val += F.cross_entropy(out, y, reduction="sum").item()
            right += (out.argmax(1) == y).sum().item()
    print(
        f"epoch {epoch + 1}: loss {total / len(train_loader):.4f}, val {val / 1000:.4f}, "
        f"acc {right / 1000:.3f}"
    )
