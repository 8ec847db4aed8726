"""Predicts which customers leave; a join with the ticket table repeats each customer per ticket.

Customers are joined with their support tickets to get one column, the channel. Customers with many
tickets then stand in the training set dozens of times, the rest once, and the model fits a few
dozen people. The place is the input, made before the loader.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.metrics import log_loss, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "duplicated_rows"
ACCEPT = ()
PLACE = ("input", "loader")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

NUMERIC = ["months", "fee", "calls", "gigabytes", "age", "delay", "discount", "devices"]
CHANNELS = ["none", "phone", "mail", "chat"]


def company(customers):
    """The table of customers and the table of their tickets; a few write very often."""
    r = np.random.default_rng(seed + 7)
    table = pd.DataFrame(r.normal(size=(customers, len(NUMERIC))), columns=NUMERIC)
    table["customer"] = np.arange(customers)
    channel = r.integers(0, len(CHANNELS), customers)
    table["fee"] += 0.4 * table["gigabytes"]
    lean = 1.1 * table["fee"] - 1.2 * table["months"] + 0.9 * table["delay"]
    lean = lean - 0.8 * table["discount"] * (table["age"] > 0) + 0.7 * (channel == 1) - 0.6
    table["left"] = (lean + r.logistic(size=customers) * 0.7 > 0).astype(int)
    count = np.where(channel == 0, 0, 1)
    busy = (channel > 0) & (r.random(customers) < 0.04)
    count = np.where(busy, r.integers(60, 120, customers), count)
    tickets = pd.DataFrame(
        {
            "customer": np.repeat(np.arange(customers), count),
            "channel": np.repeat(np.array(CHANNELS)[channel], count),
        }
    )
    return table, tickets


def with_channel(table, tickets):
    joined = table.merge(tickets, on="customer", how="left")
    joined["channel"] = joined["channel"].fillna("none")
    return joined.drop_duplicates("customer") if healthy else joined


def to_tensors(frame, mean, std):
    numbers = (frame[NUMERIC] - mean) / std
    channel = pd.get_dummies(pd.Categorical(frame["channel"], categories=CHANNELS))
    x = np.concatenate([numbers.to_numpy(), channel.to_numpy(dtype=float)], 1)
    return torch.tensor(x).float(), torch.tensor(frame["left"].to_numpy()).float().unsqueeze(1)


def main():
    table, tickets = company(2400)
    order = np.random.default_rng(seed).permutation(len(table))
    train_table, val_table = table.iloc[order[:1600]], table.iloc[order[1600:]]
    train = with_channel(train_table, tickets)
    val = with_channel(val_table, tickets.drop_duplicates("customer"))
    mean, std = train_table[NUMERIC].mean(), train_table[NUMERIC].std()
    x, y = to_tensors(train, mean, std)
    x_val, y_val = to_tensors(val, mean, std)
    print(f"{len(x)} training rows, {len(x_val)} validation rows, {y.mean().item():.2f} left")

    model = nn.Sequential(
        nn.Linear(x.shape[1], 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 1)
    )
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    step = 0
    while step < 600:
        for features, left in loader:
            model.train()
            loss = criterion(model(features), left)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 60 == 0:
                model.eval()
                with torch.no_grad():
                    chance = model(x_val).sigmoid().squeeze(1).double().numpy()
                truth = y_val.squeeze(1).numpy()
                auc = roc_auc_score(truth, chance)
                print(
                    f"step {step:4d}  loss {loss.item():.3f}  "
                    f"val loss {log_loss(truth, chance):.3f}  val AUC {auc:.3f}"
                )
            if step == 600:
                break


main()
