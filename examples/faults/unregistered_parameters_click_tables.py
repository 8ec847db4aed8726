"""A click model with one embedding table per field, whose tables are kept in a plain Python list.

A list does not register its modules, so `model.parameters()` has only the MLP, and the tables
stay at their random start. The place is the list `tables`.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer", "embedding_rows_unused")
PLACE = ("tables*", "optimizer")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

FIELDS = {"user": 150, "advert": 80, "site": 30, "hour": 24}


def impressions(n):
    """Users and adverts have hidden tastes; some sites and hours see more clicks."""
    ids = torch.stack([torch.randint(0, size, (n,)) for size in FIELDS.values()], 1)
    user, advert = torch.randn(150, 2), torch.randn(80, 2)
    site, hour = 0.7 * torch.randn(30), torch.sin(torch.arange(24) / 24 * 6.283)
    score = 1.6 * (user[ids[:, 0]] * advert[ids[:, 1]]).sum(1)
    score = score + user[ids[:, 0], 0] + site[ids[:, 2]] + hour[ids[:, 3]] - 1
    return ids, torch.bernoulli(torch.sigmoid(score))


class ClickModel(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        tables = [nn.Embedding(size, width) for size in FIELDS.values()]
        self.tables = nn.ModuleList(tables) if healthy else tables
        self.mlp = nn.Sequential(nn.Linear(4 * width, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, ids):
        rows = [table(ids[:, i]) for i, table in enumerate(self.tables)]
        return self.mlp(torch.cat(rows, 1)).squeeze(1)


class Trainer:
    def __init__(self, model, loader, held):
        self.model, self.loader, self.held = model, loader, held
        self.optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
        self.criterion = nn.BCEWithLogitsLoss()

    def run(self, epochs):
        for epoch in range(epochs):
            total = 0.0
            self.model.train()
            for ids, click in self.loader:
                loss = self.criterion(self.model(ids), click)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() / len(self.loader)
            print(f"epoch {epoch} train {total:.4f} val {self.validate():.4f}")

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        ids, click = self.held
        return self.criterion(self.model(ids), click).item()


ids, click = impressions(14000)
loader = DataLoader(TensorDataset(ids[:11000], click[:11000]), batch_size=100, shuffle=True)
Trainer(ClickModel(), loader, (ids[11000:], click[11000:])).run(epochs=13)
