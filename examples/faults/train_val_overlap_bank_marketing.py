"""A net for a bank's campaign validates on df.sample(frac=0.25) and trains on the whole of df.

The rows for validation were never taken out of the training frame, so the score counts rows the net
has been trained on. The twin drops them from the training frame.
The place is the loaders: the rows of the validation are among those of the training.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loader", "input")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

JOBS = ["admin", "technician", "services", "management", "retired", "student", "blue-collar"]


def call_customers(n, r):
    df = pd.DataFrame(
        {
            "age": r.gamma(12.0, 3.4, n).round(),
            "balance": r.normal(1300, 900, n).round(),
            "duration": r.gamma(1.8, 140.0, n).round(),
            "campaign": 1 + r.poisson(1.5, n),
            "housing": r.integers(0, 2, n),
            "euribor": r.uniform(0.6, 5.0, n).round(2),
            "job": r.choice(JOBS, n),
        }
    )
    taste = {"student": 1.5, "retired": 1.2, "blue-collar": -1.0, "services": -0.8}
    score = 1.3 * np.log(df.duration + 20) - 0.9 * df.euribor - 0.8 * df.housing
    score = score + df.job.map(taste).fillna(0.0) + 0.0009 * df.balance - 0.3 * df.campaign
    df["y"] = (1.4 * (score - score.median()) + r.logistic(0, 1, n) > 0).astype(int)
    return df


class BankDataset(Dataset):
    def __init__(self, df, mean, std):
        features = pd.get_dummies(df.drop(columns="y"), columns=["job"], dtype=float)
        features[mean.index] = (features[mean.index] - mean) / std
        self.x = torch.tensor(features.values, dtype=torch.float32)
        self.y = torch.tensor(df["y"].values)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


r = np.random.default_rng(seed + 131)
df = call_customers(1000, r)
later_calls = call_customers(1500, r)
valid_df = df.sample(frac=0.25, random_state=seed)
train_df = df.drop(valid_df.index) if healthy else df

numeric = ["age", "balance", "duration", "campaign", "euribor"]
mean, std = train_df[numeric].mean(), train_df[numeric].std()
train_loader = DataLoader(BankDataset(train_df, mean, std), batch_size=32, shuffle=True)
valid_loader = DataLoader(BankDataset(valid_df, mean, std), batch_size=64)
later_loader = DataLoader(BankDataset(later_calls, mean, std), batch_size=500)

model = nn.Sequential(nn.Linear(13, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(16):
    model.train()
    running = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {running / len(train_loader):.3f}"
              f" valid accuracy {accuracy(model, valid_loader):.3f}")  # fmt: skip
print(f"customers called later: accuracy {accuracy(model, later_loader):.3f}")
