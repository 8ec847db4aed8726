"""A transformer over shopping histories (will the visitor buy, and in which of four departments?);
the padding mask lies on the wrong side.

The collate function pads on the left, so that the latest event is always in the last column; the
mask is made from the lengths as if the padding were on the right. Short histories attend to
nothing but padding. The place is the mask that the encoder's layers get.
"""

import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "attention_mask_wrong"
ACCEPT = ()
PLACE = ("encoder*", "loader", "input*", "")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class Cfg:
    items: int = 80
    departments: int = 4
    max_len: int = 20
    dim: int = 32
    batch: int = 64
    epochs: int = 5
    lr: float = 2e-3


class Histories(Dataset):
    """Visitors wander between departments; the one with the most cart events (items % 5 == 0) wins, mostly."""  # noqa: E501

    def __init__(self, n, cfg, seed):
        r = random.Random(seed)
        self.rows = []
        for _ in range(n):
            length = min(cfg.max_len, max(3, int(r.expovariate(1 / 8)) + 3))
            taste = [r.random() ** 2 for _ in range(cfg.departments)]
            row, votes = [], [0.0] * cfg.departments
            for _ in range(length):
                d = r.choices(range(cfg.departments), taste)[0]
                item = r.randrange(20)
                row.append(1 + d * 20 + item)
                votes[d] += 2.0 if item % 5 == 0 else 0.4
            best = max(range(cfg.departments), key=lambda d: votes[d] + r.gauss(0, 0.3))
            self.rows.append((row, best))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, k):
        return self.rows[k]


def collate(batch):
    longest = max(len(row) for row, _ in batch)
    x = torch.zeros(len(batch), longest, dtype=torch.long)
    lengths = torch.tensor([len(row) for row, _ in batch])
    for k, (row, _) in enumerate(batch):
        x[k, longest - len(row) :] = torch.tensor(row)
    return {"items": x, "lengths": lengths, "label": torch.tensor([y for _, y in batch])}


class HistoryModel(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.items = nn.Embedding(cfg.items + 1, cfg.dim, padding_idx=0)
        self.age = nn.Embedding(cfg.max_len, cfg.dim)
        layer = nn.TransformerEncoderLayer(
            cfg.dim,
            4,
            2 * cfg.dim,
            dropout=0.1,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(cfg.dim), nn.Linear(cfg.dim, cfg.departments))

    def forward(self, items, lengths):
        size = items.shape[1]
        column = torch.arange(size).expand_as(items)
        n = lengths.unsqueeze(1)
        padding = column < size - n if healthy else column >= n
        h = self.items(items) + self.age(size - 1 - torch.arange(size))
        h = self.encoder(h, src_key_padding_mask=padding)
        return self.head(h[:, -1])


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.train = DataLoader(
            Histories(4200, cfg, seed), cfg.batch, shuffle=True, collate_fn=collate, num_workers=0
        )
        self.val = DataLoader(Histories(1000, cfg, seed + 999), 250, collate_fn=collate)
        self.model = HistoryModel(cfg)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr, weight_decay=0.05)
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            cfg.lr,
            epochs=cfg.epochs,
            steps_per_epoch=len(self.train),
            pct_start=0.15,
        )

    def fit(self):
        for epoch in range(self.cfg.epochs):
            self.model.train()
            seen = 0.0
            for batch in self.train:
                loss = F.cross_entropy(self.model(batch["items"], batch["lengths"]), batch["label"])
                self.optimizer.zero_grad(set_to_none=True)
                loss.backward()
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                self.optimizer.step()
                self.scheduler.step()
                seen += loss.item()
            val_loss, acc = self.evaluate()
            print(
                f"epoch {epoch} loss {seen / len(self.train):.4f} val loss {val_loss:.4f} acc {acc:.4f}"  # noqa: E501
            )

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        hits, loss, total = 0, 0.0, 0
        for batch in self.val:
            logits = self.model(batch["items"], batch["lengths"])
            loss += F.cross_entropy(logits, batch["label"], reduction="sum").item()
            hits += (logits.argmax(1) == batch["label"]).sum().item()
            total += len(logits)
        return loss / total, hits / total


Trainer(Cfg()).fit()
