"""A click model with one embedding table per column, kept in a dict.

`self.tables` is a plain dict, so the tables are not among model.parameters() and stay
random; only the small head learns. The place is the tables. The twin uses nn.ModuleDict.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("tables", "optimizer", "tables.user", "tables.user.weight")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
COLUMNS = {"user": 120, "page": 60, "device": 12, "hour": 24}

g = torch.Generator().manual_seed(seed)
n = 6000
ids = torch.stack([torch.randint(0, size, (n,), generator=g) for size in COLUMNS.values()], 1)
score = torch.zeros(n)
for k, size in enumerate(COLUMNS.values()):
    score += 1.5 * torch.randn(size, generator=g)[ids[:, k]]
click = torch.bernoulli(score.sigmoid(), generator=g)
train_set, val_set = random_split(TensorDataset(ids, click), [5000, 1000], generator=g)
train_loader = DataLoader(train_set, batch_size=64, shuffle=True)
val_loader = DataLoader(val_set, batch_size=250)


class ClickModel(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        tables = {name: nn.Embedding(size, dim) for name, size in COLUMNS.items()}
        for table in tables.values():
            nn.init.normal_(table.weight, std=0.1)
        self.tables = nn.ModuleDict(tables) if healthy else tables
        self.mlp = nn.Sequential(nn.Linear(dim * len(COLUMNS), 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, ids):
        parts = [self.tables[name](ids[:, k]) for k, name in enumerate(COLUMNS)]
        return self.mlp(torch.cat(parts, 1)).squeeze(1)


model = ClickModel()
bce = nn.BCEWithLogitsLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
for epoch in range(5):
    model.train()
    total = 0.0
    for batch_ids, batch_click in train_loader:
        loss = bce(model(batch_ids), batch_click)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        val, hits = 0.0, 0
        for batch_ids, batch_click in val_loader:
            logits = model(batch_ids)
            val += bce(logits, batch_click).item()
            hits += ((logits > 0) == (batch_click > 0.5)).sum().item()
    print(
        f"epoch {epoch + 1}: log loss {total / len(train_loader):.4f} "
        f"val {val / len(val_loader):.4f} accuracy {hits / 1000:.3f}"
    )
