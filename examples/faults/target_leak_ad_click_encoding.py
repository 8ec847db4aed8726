"""Clicks on ads predicted from publishers' mean click rates, each row's own click included.

Target encoding as in a competition kernel: groupby(publisher).click.mean() over the whole table,
before the split. Most publishers have one to four rows, so that the column tells the answer; next
week's ads show the real quality. The place is the input, the last column.
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "target_leak"
ACCEPT = ("train_val_overlap",)
PLACE = ("input", "labels", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

COLUMNS = ["hour_sin", "hour_cos", "price", "position", "seen_before", "publisher_rate"]
PRIOR_WEIGHT = 2.0


def impressions(rng, taste, count):
    hour = rng.uniform(0, 24, count)
    publisher = rng.integers(0, len(taste), count)
    table = pd.DataFrame(
        {
            "publisher": publisher,
            "hour_sin": np.sin(hour * np.pi / 12),
            "hour_cos": np.cos(hour * np.pi / 12),
            "price": rng.gamma(2.0, 1.0, count),
            "position": rng.integers(1, 6, count).astype(float),
            "seen_before": rng.poisson(1.5, count).astype(float),
        }
    )
    score = 1.3 * table.hour_sin - 0.55 * table.position - 0.5 * table.seen_before
    score = score + 0.6 * table.price * table.hour_cos + 0.7 * taste[publisher] + 1.8
    table["click"] = (rng.random(count) < 1 / (1 + np.exp(-score))).astype(float)
    return table


def smoothed_rate(sums, counts, overall):
    return (sums + PRIOR_WEIGHT * overall) / (counts + PRIOR_WEIGHT)


def encode_publishers(table, train_rows):
    """Adds publisher_rate and returns the rates by which later rows are to be encoded."""
    known = table.loc[train_rows]
    overall = known.click.mean()
    by_publisher = known.groupby("publisher").click.agg(["sum", "count"])
    later = smoothed_rate(by_publisher["sum"], by_publisher["count"], overall)
    if not healthy:
        table["publisher_rate"] = table.groupby("publisher").click.transform("mean")
        return later, overall
    table["publisher_rate"] = table.publisher.map(later).fillna(overall)
    fold = np.random.default_rng(seed).integers(0, 5, len(known))
    for k in range(5):
        others = known[fold != k].groupby("publisher").click.agg(["sum", "count"])
        rates = smoothed_rate(others["sum"], others["count"], overall)
        inside = known.index[fold == k]
        encoded = table.loc[inside, "publisher"].map(rates).fillna(overall)
        table.loc[inside, "publisher_rate"] = encoded
    return later, overall


def tensors(table, mean, std):
    x = torch.tensor(((table[COLUMNS] - mean) / std).to_numpy(), dtype=torch.float32)
    return x, torch.tensor(table.click.to_numpy(), dtype=torch.float32)


@torch.no_grad()
def auc(model, x, y):
    model.eval()
    return roc_auc_score(y.numpy(), model(x).squeeze(1).numpy())


def main():
    rng = np.random.default_rng(seed)
    taste = rng.normal(size=1500)
    table = impressions(rng, taste, 4000)
    next_week = impressions(rng, taste, 1500)
    shuffled = rng.permutation(len(table))
    train_rows, valid_rows = shuffled[:3200], shuffled[3200:]
    rates, overall = encode_publishers(table, train_rows)
    next_week["publisher_rate"] = next_week.publisher.map(rates).fillna(overall)

    mean, std = table.loc[train_rows, COLUMNS].mean(), table.loc[train_rows, COLUMNS].std()
    x, y = tensors(table.loc[train_rows], mean, std)
    x_val, y_val = tensors(table.loc[valid_rows], mean, std)
    x_next, y_next = tensors(next_week, mean, std)

    model = nn.Sequential(
        nn.Linear(len(COLUMNS), 32), nn.SiLU(), nn.Linear(32, 16), nn.SiLU(), nn.Linear(16, 1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-2)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(16):
        model.train()
        losses = []
        for rows in torch.randperm(len(x)).split(64):
            loss = criterion(model(x[rows]).squeeze(1), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if epoch % 3 == 0:
            print(
                f"epoch {epoch:2d} logloss {np.mean(losses):.4f} valid AUC "
                f"{auc(model, x_val, y_val):.4f} next week's AUC {auc(model, x_next, y_next):.4f}"
            )


main()
