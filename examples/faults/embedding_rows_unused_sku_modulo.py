"""A neural recommender predicts clicks from user and article embeddings; all articles fall into a
handful of the table's rows.

The article numbers (SKUs) end in a check block, so that all are multiples of 64; the user folds
them into the table by `sku % rows`, with 1,024 rows: 16 rows are used by 1,024 articles. The
place is item_emb and the id map of the input.
"""

import numpy as np
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "embedding_rows_unused"
ACCEPT = ()
PLACE = ("item_emb*", "input*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

N_USERS, N_ITEMS, DIM, EVENTS = 600, 1024, 8, 75_000
CHECK_BLOCK = 64


def clicks(rng):
    u_taste = rng.normal(size=(N_USERS, 4))
    i_trait = rng.normal(size=(N_ITEMS, 4))
    active = rng.normal(0, 0.8, N_USERS)
    appeal = rng.normal(0, 1.3, N_ITEMS)
    sku = (rng.permutation(N_ITEMS) + 1) * CHECK_BLOCK
    user = rng.integers(0, N_USERS, EVENTS)
    item = rng.integers(0, N_ITEMS, EVENTS)
    z = 0.8 * (u_taste[user] * i_trait[item]).sum(1) + 1.2 * appeal[item] + active[user] - 0.3
    click = rng.random(EVENTS) < 1 / (1 + np.exp(-z))
    return user, sku[item], click.astype(np.float32)


class ClickLog(Dataset):
    def __init__(self, user, sku, click, rows):
        self.user = torch.from_numpy(user)
        row = sku // CHECK_BLOCK - 1 if healthy else sku % rows
        self.item = torch.from_numpy(row)
        self.click = torch.from_numpy(click)

    def __len__(self):
        return len(self.user)

    def __getitems__(self, idx):
        idx = torch.tensor(idx)
        return self.user[idx], self.item[idx], self.click[idx]

    def __getitem__(self, i):
        return self.user[i], self.item[i], self.click[i]


class NeuMF(nn.Module):
    def __init__(self):
        super().__init__()
        self.user_emb = nn.Embedding(N_USERS, DIM)
        self.item_emb = nn.Embedding(N_ITEMS, DIM)
        self.item_bias = nn.Embedding(N_ITEMS, 1)
        self.mlp = nn.Sequential(nn.Linear(2 * DIM, 32), nn.ReLU(), nn.Linear(32, 1))
        for e in (self.user_emb, self.item_emb):
            nn.init.normal_(e.weight, std=0.1)
        nn.init.zeros_(self.item_bias.weight)

    def forward(self, user, item):
        u, i = self.user_emb(user), self.item_emb(item)
        return (u * i).sum(1) + self.item_bias(item)[:, 0] + self.mlp(torch.cat([u, i], 1))[:, 0]


def evaluate(model, loader):
    model.eval()
    p, y = [], []
    with torch.no_grad():
        for u, i, c in loader:
            p.append(torch.sigmoid(model(u, i)))
            y.append(c)
    p, y = torch.cat(p), torch.cat(y)
    return nn.functional.binary_cross_entropy(p, y).item(), roc_auc_score(y, p)


def main():
    user, sku, click = clicks(np.random.default_rng(seed))
    cut = int(0.85 * EVENTS)
    pick = lambda tensors: tensors  # noqa: E731
    train = ClickLog(user[:cut], sku[:cut], click[:cut], N_ITEMS)
    val = ClickLog(user[cut:], sku[cut:], click[cut:], N_ITEMS)
    train_loader = DataLoader(train, 256, shuffle=True, collate_fn=pick, drop_last=True)
    val_loader = DataLoader(val, 2000, collate_fn=pick)
    model = NeuMF()
    opt = torch.optim.Adam(
        [
            {
                "params": list(model.user_emb.parameters()) + list(model.item_emb.parameters()),
                "weight_decay": 1e-4,
            },
            {
                "params": list(model.item_bias.parameters()) + list(model.mlp.parameters()),
                "weight_decay": 1e-5,
            },
        ],
        lr=2e-3,
    )
    best, bad = float("inf"), 0
    for epoch in range(7):
        model.train()
        total = 0.0
        for u, i, c in train_loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(u, i), c)
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item()
        val_loss, auc = evaluate(model, val_loader)
        print(
            f"epoch {epoch}: train {total / len(train_loader):.4f} val {val_loss:.4f} auc {auc:.4f}"
        )
        if val_loss < best - 1e-4:
            best, bad = val_loss, 0
        else:
            bad += 1
            if bad == 2:
                break


main()
