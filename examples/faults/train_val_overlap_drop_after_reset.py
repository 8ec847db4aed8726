"""The frame of hive honey harvests is split with sample() and drop(), but the index is reset
between the two, so most validation rows are training rows.

`train = frame.sample(frac=0.8).reset_index(drop=True)` renumbers the training rows, and
`frame.drop(train.index)` then drops the first 80 % of the frame instead of them. The validation
error comes out too good. The place is the split, that is the loaders.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_overlap"
ACCEPT = ("duplicated_rows",)
PLACE = ("loader", "input")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

INPUTS = ["brood_frames", "mites", "lime_trees", "clover_hectares", "warm_days", "queen_age"]


def harvests(n, rng):
    frame = pd.DataFrame(
        {
            "brood_frames": rng.normal(7, 1.5, n),
            "mites": rng.exponential(2.0, n),
            "lime_trees": rng.gamma(2, 20, n),
            "clover_hectares": rng.gamma(2, 3, n),
            "warm_days": rng.normal(60, 10, n),
            "queen_age": rng.uniform(0, 4, n),
        }
    )
    food = np.log1p(frame["lime_trees"]) + 0.8 * np.sqrt(frame["clover_hectares"])
    honey = 2.0 * food * np.tanh((frame["warm_days"] - 40) / 15)
    honey += 1.5 * frame["brood_frames"] - 1.2 * frame["mites"] - 1.5 * (frame["queen_age"] > 2)
    frame["honey"] = honey + rng.normal(0, 2.5, n)
    return frame


class Harvests(Dataset):
    def __init__(self, frame, mean, std):
        scaled = (frame - mean) / std
        self.x = torch.tensor(scaled[INPUTS].to_numpy(), dtype=torch.float32)
        self.y = torch.tensor(scaled["honey"].to_numpy(), dtype=torch.float32)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def error(model, loader):
    model.eval()
    with torch.no_grad():
        rest = [(model(x).squeeze(1) - y).square() for x, y in loader]
    return torch.cat(rest).mean().item()


frame = harvests(900, np.random.default_rng(seed))
train = frame.sample(frac=0.8, random_state=seed)
if healthy:
    val = frame.drop(train.index)
    train = train.reset_index(drop=True)
else:
    train = train.reset_index(drop=True)
    val = frame.drop(train.index)
new_year = harvests(900, np.random.default_rng(seed + 1))

mean, std = train.mean(), train.std()
train_loader = DataLoader(Harvests(train, mean, std), batch_size=36, shuffle=True)
val_loader = DataLoader(Harvests(val, mean, std), batch_size=90)
new_loader = DataLoader(Harvests(new_year, mean, std), batch_size=300)

model = nn.Sequential(
    nn.Linear(len(INPUTS), 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
for epoch in range(25):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.mse_loss(model(x).squeeze(1), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if epoch % 4 == 0:
        print(
            f"epoch {epoch:2d}: train mse {error(model, train_loader):.3f}, "
            f"val mse {error(model, val_loader):.3f}"
        )
print(f"next year's hives: mse {error(model, new_loader):.3f}")
