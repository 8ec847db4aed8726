"""Fares from the zones, hour and driver of a trip: the embeddings of the columns are kept in a
plain dict, which nn.Module does not see.

model.parameters() has the MLP alone; the embeddings stay random (three numbers a zone), are not
saved with the model either, and the error is several times the twin's. The place is the model.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("*emb*", "")
SILENT = True
EXACT = True
EARLY = True

CARDINALITIES = {"pickup": 40, "dropoff": 40, "hour": 24, "driver": 30}


class TabularNet(nn.Module):
    def __init__(self, cardinalities, n_numeric, registered):
        super().__init__()
        tables = {name: nn.Embedding(n, 3) for name, n in cardinalities.items()}
        self.embeddings = nn.ModuleDict(tables) if registered else tables
        self.bn = nn.BatchNorm1d(n_numeric)
        self.layers = nn.Sequential(
            nn.Linear(3 * len(cardinalities) + n_numeric, 64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, cat, num):
        parts = [emb(cat[:, i]) for i, emb in enumerate(self.embeddings.values())]
        return self.layers(torch.cat([*parts, self.bn(num)], dim=1)).squeeze(1)


def trips(n):
    where, who, jam = torch.randn(40, 2), 0.4 * torch.randn(30), 0.7 * torch.randn(24)
    cat = torch.stack([torch.randint(c, (n,)) for c in CARDINALITIES.values()], dim=1)
    num = torch.randn(n, 2)
    way = (where[cat[:, 0]] - where[cat[:, 1]]).norm(dim=1)
    fare = way * (1 + 0.3 * jam[cat[:, 2]]) + jam[cat[:, 2]] + who[cat[:, 3]] + 0.5 * num[:, 0]
    return cat, num, (fare - fare.mean()) / fare.std() + 0.15 * torch.randn(n)


healthy, seed = arguments(__doc__)
cat, num, fare = trips(10000)
train_ds = TensorDataset(cat[:8000], num[:8000], fare[:8000])
valid_ds = TensorDataset(cat[8000:], num[8000:], fare[8000:])
train_dl = DataLoader(train_ds, batch_size=128, shuffle=True)
valid_dl = DataLoader(valid_ds, batch_size=500)
model = TabularNet(CARDINALITIES, 2, registered=healthy)
opt = torch.optim.Adam(model.parameters(), lr=1e-2, weight_decay=1e-5)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, 1.5e-2, epochs=12, steps_per_epoch=len(train_dl))

for epoch in range(12):
    model.train()
    train_loss = 0.0
    for c, n, y in train_dl:
        loss = nn.functional.mse_loss(model(c, n), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        train_loss += loss.item() / len(train_dl)
    model.eval()
    with torch.no_grad():
        valid_loss = sum(nn.functional.mse_loss(model(c, n), y) for c, n, y in valid_dl) / 4
print(f"loss {train_loss:.3f}, valid loss {valid_loss:.3f}")
