"""An MLP with batch norm judges loans; its validate function begins with model.train().

The validation batches of four rows are normalised by their own statistics, and running_mean and
running_var are updated from validation data; accuracy and log loss come out clearly worse.
The place is validate() in the loop (the BatchNorm1d layers of the model).
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "train_mode_in_validation"
ACCEPT = ()
PLACE = ("loop", "model", "net.*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)


def make_loans(n):
    rng = np.random.default_rng(seed)
    df = pd.DataFrame(
        {
            "income": rng.lognormal(10.4, 0.5, n),
            "amount": rng.lognormal(9.2, 0.7, n),
            "years": rng.integers(1, 8, n),
            "age": rng.uniform(20, 70, n),
            "cards": rng.poisson(2, n),
            "late_payments": rng.poisson(0.8, n),
            "own_house": rng.integers(0, 2, n),
        }
    )
    burden = np.log(df.amount / df.years / df.income)
    score = 1.5 * (burden + 2.3) + 1.1 * (df.late_payments - 0.8) * (1.4 - df.own_house)
    score += 0.02 * (40 - df.age) + 0.3 * (df.cards - 2)
    df["default"] = (1.5 * score + rng.logistic(0, 1, n) > 0).astype(int)
    df[["income", "amount"]] = np.log(df[["income", "amount"]])
    return df


def to_dataset(df, mean, std):
    features = (df.drop(columns="default") - mean) / std
    return TensorDataset(
        torch.tensor(features.to_numpy()).float(), torch.tensor(df["default"].to_numpy()).float()
    )


class LoanNet(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(inputs, 64),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Linear(64, 32),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, x):
        return self.net(x).squeeze(1)


def train_one_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.no_grad()
def validate(model, loader):
    if healthy:
        model.eval()
    else:
        model.train()
    total, right = 0.0, 0
    for x, y in loader:
        logits = model(x)
        total += nn.functional.binary_cross_entropy_with_logits(logits, y).item() * len(y)
        right += ((logits > 0) == y.bool()).sum().item()
    return total / len(loader.dataset), right / len(loader.dataset)


loans = make_loans(3200)
train_df, valid_df = loans[:2600], loans[2600:]
mean, std = train_df.drop(columns="default").mean(), train_df.drop(columns="default").std()
train_loader = DataLoader(to_dataset(train_df, mean, std), batch_size=64, shuffle=True)
valid_loader = DataLoader(to_dataset(valid_df, mean, std), batch_size=4)
model = LoanNet(train_df.shape[1] - 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
log = []
for _ in range(8):
    loss = train_one_epoch(model, train_loader, optimizer)
    log.append((loss, *validate(model, valid_loader)))
print(pd.DataFrame(log, columns=["train_loss", "valid_loss", "valid_acc"]).round(4))
