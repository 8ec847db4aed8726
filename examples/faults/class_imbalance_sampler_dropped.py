"""Failures of pumps from telemetry, 3 % positive; the weighted sampler went when shuffle came in.

DataLoader refuses `shuffle=True` together with a sampler, so whoever got that error kept the
shuffling and deleted the sampler. The network then sees 3 failures in 100 rows, says "no failure"
for everything, and is 97 % right. The place is the data (what the loader draws). The twin keeps
the sampler.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

KIND = "class_imbalance"
ACCEPT = ()
PLACE = ("data", "labels", "loss")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

N, FEATURES = 6000, 12
g = torch.Generator().manual_seed(40 + seed)
x = torch.randn(
    N, FEATURES, generator=g
)  # pressure, vibration bands, temperature, ...: already standardised
risk = (
    0.9 * x[:, 0]
    + 0.8 * x[:, 1] * x[:, 2]
    + 0.7 * x[:, 3].clamp(min=0)
    + 0.5 * torch.randn(N, generator=g)
)
risk = risk + 0.8 * torch.randn(N, generator=g)
y = (risk > risk.quantile(0.97)).float()
train, val = slice(0, 4500), slice(4500, N)
train_set = TensorDataset(x[train], y[train])

weight = torch.where(y[train] > 0, 1 / y[train].mean(), 1 / (1 - y[train].mean()))
sampler = WeightedRandomSampler(weight, len(train_set), generator=g)
loader_options = {"batch_size": 128}
if healthy:
    loader_options["sampler"] = sampler
else:
    loader_options["shuffle"] = True
loader = DataLoader(train_set, **loader_options)

model = nn.Sequential(nn.Linear(FEATURES, 24), nn.ReLU(), nn.Dropout(0.2), nn.Linear(24, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.05)
criterion = nn.BCEWithLogitsLoss()

for epoch in range(10):
    model.train()
    total = 0.0
    for features, failed in loader:
        loss = criterion(model(features).squeeze(1), failed)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        said = model(x[val]).squeeze(1) > 0
    truth = y[val] > 0
    accuracy = (said == truth).float().mean().item()
    recall = (said & truth).sum().item() / truth.sum().item()
    quiet = (~said & ~truth).sum().item() / (~truth).sum().item()
    print(
        f"epoch {epoch} loss {total / len(loader):.4f} accuracy {accuracy:.3f} recall {recall:.3f} "
        f"balanced {(recall + quiet) / 2:.3f}"
    )
