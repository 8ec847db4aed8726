"""A churn model whose features are summed up per customer, while its labels are in another order.

The person took the features from a pandas groupby, which sorts by the customer's key, and the
labels with drop_duplicates, which keeps the order in which the customers appear in the log. Both
tables have one row per customer, so nothing complains. The place is the labels (the input).
"""

import numpy as np
import pandas as pd
import torch
from data import arguments
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("input", "labels", "loader", "loss")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

ARGS = {"customers": 1600, "epochs": 20, "batch_size": 32, "lr": 2e-3, "weight_decay": 1e-3}


def call_log(n, rng):
    """One row per call to the hotline, of n customers, as it was written day by day."""
    patience = rng.normal(0, 1, n)
    trouble = rng.gamma(2.0, 1.0, n)
    keys = rng.permutation(np.arange(10_000, 10_000 + n))
    calls = rng.poisson(4 + 2 * trouble) + 2
    who = np.repeat(np.arange(n), calls)
    drive = 1.6 * (trouble - 2) - 1.4 * patience + 0.8 * (trouble - 2) * patience
    log = pd.DataFrame(
        {
            "customer": keys[who],
            "minutes": rng.gamma(2, 2 + 1.5 * np.clip(patience[who], -1, None), len(who)),
            "wait": rng.exponential(1 + trouble[who]),
            "transfers": rng.poisson(0.4 * trouble[who]),
            "mood": 0.7 * patience[who] + rng.normal(0, 0.8, len(who)),
            "left": (drive + rng.normal(0, 0.5, n) > 0).astype(int)[who],
        }
    )
    return log.sample(frac=1, random_state=int(rng.integers(1 << 30)))


def features_and_labels(log):
    grouped = log.groupby("customer")
    features = grouped.agg(
        calls=("minutes", "size"),
        minutes=("minutes", "mean"),
        wait=("wait", "mean"),
        wait_max=("wait", "max"),
        transfers=("transfers", "mean"),
        mood=("mood", "mean"),
    )
    in_order = grouped["left"].first()
    labels = in_order if healthy else log.drop_duplicates("customer")["left"]
    return features.to_numpy(np.float32), labels.to_numpy(np.float32)


def tensors(x, x_val, y, y_val):
    mean, std = x.mean(0), x.std(0)
    return [torch.from_numpy(a) for a in ((x - mean) / std, (x_val - mean) / std, y, y_val)]


def main():
    x, y = features_and_labels(call_log(ARGS["customers"], np.random.default_rng(seed)))
    parts = train_test_split(x, y, test_size=0.25, random_state=seed, stratify=y)
    x, x_val, y, y_val = tensors(*parts)
    print(f"{len(x)} customers to learn from, {y.mean():.1%} of them left")

    model = nn.Sequential(
        nn.Linear(x.shape[1], 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2),
        nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1),
    )  # fmt: skip
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=ARGS["lr"], weight_decay=ARGS["weight_decay"]
    )
    loader = DataLoader(
        TensorDataset(x, y), batch_size=ARGS["batch_size"], shuffle=True, drop_last=True
    )
    for epoch in range(ARGS["epochs"]):
        model.train()
        running = 0.0
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = criterion(model(xb).squeeze(1), yb)
            loss.backward()
            optimizer.step()
            running += loss.item()
        model.eval()
        with torch.no_grad():
            logits = model(x_val).squeeze(1)
            val_loss = criterion(logits, y_val).item()
        auc = roc_auc_score(y_val.numpy(), logits.numpy())
        if epoch % 3 == 0 or epoch == ARGS["epochs"] - 1:
            print(
                f"epoch {epoch + 1:2d}/{ARGS['epochs']} - loss: {running / len(loader):.4f} - "
                f"val_loss: {val_loss:.4f} - val_auc: {auc:.4f}"
            )


main()
