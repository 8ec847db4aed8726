"""A two-tower recommender with in-batch negatives; the items' vectors come from a method that is
without gradients.

`encode_items`, written for the index of the serving side, keeps autograd off; the training step
uses the same method. The item tower is run in every step but never gets a gradient. The place is
item_tower.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_graph"
ACCEPT = ("frozen_parameters",)
PLACE = ("item_tower*",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

N_USERS, N_ITEMS, N_CATS, N_BRANDS = 600, 500, 25, 60
rng = np.random.default_rng(seed + 3)
cat_taste = rng.normal(0, 1, (N_CATS, 6))
brand_taste = rng.normal(0, 1, (N_BRANDS, 6))
price_taste = rng.normal(0, 0.8, 6)
item_cat = rng.integers(0, N_CATS, N_ITEMS)
item_brand = rng.integers(0, N_BRANDS, N_ITEMS)
item_price = rng.normal(0, 1, N_ITEMS)
item_latent = (
    cat_taste[item_cat] + 0.7 * brand_taste[item_brand] + item_price[:, None] * price_taste
)
user_latent = rng.normal(0, 1, (N_USERS, 6))
scores = user_latent @ item_latent.T
prob = np.exp(1.2 * (scores - scores.max(1, keepdims=True)))
prob = prob / prob.sum(1, keepdims=True)
clicks = np.stack([rng.choice(N_ITEMS, 26, p=p) for p in prob])

CATS = torch.tensor(item_cat)
BRANDS = torch.tensor(item_brand)
PRICES = torch.tensor(item_price, dtype=torch.float32)


class ItemTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.cat = nn.Embedding(N_CATS, 12)
        self.brand = nn.Embedding(N_BRANDS, 12)
        self.mlp = nn.Sequential(nn.Linear(25, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, ids):
        parts = [self.cat(CATS[ids]), self.brand(BRANDS[ids]), PRICES[ids].unsqueeze(-1)]
        return F.normalize(self.mlp(torch.cat(parts, -1)), dim=-1)


class UserTower(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.emb = nn.Embedding(N_USERS, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, ids):
        return F.normalize(self.mlp(self.emb(ids)), dim=-1)


class TwoTower(nn.Module):
    """Lightning-like: the module knows its steps and its optimiser."""

    def __init__(self, dim=16, temperature=0.1):
        super().__init__()
        self.user_tower = UserTower(dim)
        self.item_tower = ItemTower(dim)
        self.temperature = temperature
        counts = torch.bincount(torch.tensor(clicks[:, :22]).flatten(), minlength=N_ITEMS).float()
        self.register_buffer("log_q", ((counts + 1) / counts.sum()).log())

    def encode_items(self, ids):
        with torch.set_grad_enabled(healthy and self.training):
            return self.item_tower(ids)

    def training_step(self, batch):
        users, items = batch
        logits = self.user_tower(users) @ self.encode_items(items).T / self.temperature
        logits = logits - self.log_q[items]
        same = items.unsqueeze(0) == items.unsqueeze(1)
        same.fill_diagonal_(False)
        return F.cross_entropy(logits.masked_fill(same, -1e4), torch.arange(len(users)))

    @torch.no_grad()
    def recall_at(self, k, held_out, seen):
        self.eval()
        index = self.encode_items(torch.arange(N_ITEMS))
        logits = self.user_tower(torch.arange(N_USERS)) @ index.T
        logits.scatter_(1, seen, -9.0)
        top = logits.topk(k, dim=1).indices
        fresh = ~(held_out.unsqueeze(2) == seen.unsqueeze(1)).any(2)
        found = (held_out.unsqueeze(2) == top.unsqueeze(1)).any(2) & fresh
        return (found.sum() / fresh.sum()).item()

    def configure_optimizers(self, steps):
        opt = torch.optim.Adam(self.parameters(), lr=3e-3)
        return opt, torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.1, total_iters=steps)


seen, held_out = torch.tensor(clicks[:, :22]), torch.tensor(clicks[:, 22:])
pairs = TensorDataset(torch.arange(N_USERS).repeat_interleave(22), seen.flatten())
loader = DataLoader(pairs, batch_size=256, shuffle=True, drop_last=True)
model = TwoTower()
epochs = 8
optimizer, scheduler = model.configure_optimizers(epochs * len(loader))
for epoch in range(epochs):
    model.train()
    total = 0.0
    for batch in loader:
        loss = model.training_step(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    recall = model.recall_at(20, held_out, seen)
    print(f"epoch {epoch} loss {total / len(loader):.4f} recall@20 {recall:.4f}")
