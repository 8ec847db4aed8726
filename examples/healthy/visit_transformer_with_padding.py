"""Whether a customer will buy, by a transformer encoder over the padded clicks of a visit.

Visits have 4 to 20 clicks and are padded per batch in `collate_fn`. The mask goes to the encoder
and to the mean over the clicks. Linear warm-up and then linear decay, clipping at 1.
"""

import itertools
import random

import torch
from data import arguments
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

ODD = "the rate starts near zero, and the lengths of the batches vary"

_, seed = arguments(__doc__)
PAGES = ["<pad>", "home", "search", "item", "review", "basket", "help", "terms", "account", "sale"]


class Visits(Dataset):
    """They buy who come from a review to the basket, or look at three items and no terms."""

    def __init__(self, n, r):
        self.rows = []
        for _ in range(n):
            clicks = [r.choices(range(1, 10), (2, 3, 4, 2, 1.2, 1, 0.6, 1, 1.5))[0]
                      for _ in range(r.randint(4, 20))]  # fmt: skip
            if r.random() < 0.3:
                at = r.randrange(len(clicks) - 1)
                clicks[at : at + 2] = [4, 5]
            joined = any(a == 4 and b == 5 for a, b in itertools.pairwise(clicks))
            buys = joined or (clicks.count(3) >= 4 and 7 not in clicks)
            self.rows.append((torch.tensor(clicks), float(buys != (r.random() < 0.03))))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i]


def collate(rows):
    clicks = pad_sequence([row[0] for row in rows], batch_first=True, padding_value=0)
    return clicks, torch.tensor([row[1] for row in rows])


class VisitEncoder(nn.Module):
    def __init__(self, dim=32, heads=4, layers=2, longest=20):
        super().__init__()
        self.page = nn.Embedding(len(PAGES), dim, padding_idx=0)
        self.place = nn.Embedding(longest, dim)
        layer = nn.TransformerEncoderLayer(
            dim, heads, 2 * dim, dropout=0.1, batch_first=True, norm_first=True, activation="gelu"
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, clicks):
        padding = clicks == 0
        h = self.page(clicks) + self.place.weight[: clicks.shape[1]]
        h = self.norm(self.encoder(h, src_key_padding_mask=padding))
        kept = (~padding).unsqueeze(-1).float()
        return self.out((h * kept).sum(1) / kept.sum(1)).squeeze(-1)


r = random.Random(seed)
train_loader = DataLoader(Visits(2400, r), batch_size=64, shuffle=True, collate_fn=collate)
val_loader = DataLoader(Visits(800, r), batch_size=200, collate_fn=collate)
model = VisitEncoder()
EPOCHS = 12
steps, warm = EPOCHS * len(train_loader), 40
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.LambdaLR(
    optimizer, lambda s: min((s + 1) / warm, max(0.02, (steps - s) / (steps - warm)))
)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for clicks, buys in train_loader:
        loss = criterion(model(clicks), buys)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    hits = val_loss = 0.0
    with torch.no_grad():
        for clicks, buys in val_loader:
            logit = model(clicks)
            val_loss += criterion(logit, buys).item() / len(val_loader)
            hits += ((logit > 0) == (buys > 0.5)).sum().item()
    print(f"{epoch} {total / len(train_loader):.3f} val {val_loss:.3f} accuracy {hits / 800:.3f}")
