"""Foretells in week three who will finish an online course; one column is known only at the end.

The table was exported after the course and joined by the learner's number. Among the columns is
what was paid for certificates, which only those pay who have finished. For this year's learners,
about whom somebody wants to know now, it is zero for all.
The place is the input. The twin leaves the column out.
"""

import numpy as np
import torch
from data import arguments, standardise
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "target_leak"
ACCEPT = ()
PLACE = ("input*",)
SILENT = True
EXACT = False
EARLY = True

EARLY_COLUMNS = ["logins", "video_minutes", "first_quiz", "forum_posts", "age", "paid_in_advance"]


def export(r, n):
    table = {
        "logins": r.poisson(9, n),
        "video_minutes": r.gamma(3.0, 40.0, n),
        "first_quiz": r.normal(60, 18, n).clip(0, 100),
        "forum_posts": r.poisson(1.5, n),
        "age": r.normal(31, 9, n).clip(16, 80),
        "paid_in_advance": r.random(n) < 0.25,
    }
    drive = (
        0.22 * (table["logins"] - 9)
        + 0.012 * (table["video_minutes"] - 120)
        + 0.04 * (table["first_quiz"] - 60)
        + 0.25 * (table["forum_posts"] - 1.5)
        + 0.9 * (table["paid_in_advance"] - 0.25)
    )
    finished = drive + r.logistic(0, 0.6, n) > 0.4
    fee = np.where(finished & (r.random(n) < 0.96), 49.0, 0.0)
    table["certificate_fees"] = fee
    return table, finished


def to_tensor(table, columns):
    return torch.tensor(np.stack([table[c] for c in columns], 1).astype(np.float32))


def score(model, x, y):
    model.eval()
    with torch.no_grad():
        logits = model(x).squeeze(1)
    loss = nn.functional.binary_cross_entropy_with_logits(logits, y).item()
    return loss, ((logits > 0) == (y > 0.5)).float().mean().item()


def main():
    healthy, seed = arguments(__doc__)
    r = np.random.default_rng(seed)
    columns = EARLY_COLUMNS if healthy else [*EARLY_COLUMNS, "certificate_fees"]
    last_year, finished = export(r, 1600)
    this_year, will_finish = export(r, 600)
    this_year["certificate_fees"] = np.zeros(600)
    table = to_tensor(last_year, columns)
    y = torch.tensor(finished).float()
    x, x_val, x_now = standardise(table[:1200], table[1200:], to_tensor(this_year, columns))
    y, y_val, y_now = y[:1200], y[1200:], torch.tensor(will_finish).float()

    loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True)
    model = nn.Sequential(nn.Linear(len(columns), 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, weight_decay=0.02)
    for epoch in range(12):
        model.train()
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.binary_cross_entropy_with_logits(model(xb).squeeze(1), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() / len(loader)
        val_loss, accuracy = score(model, x_val, y_val)
        print(f"epoch {epoch} train {total:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
    now_loss, now_accuracy = score(model, x_now, y_now)
    print(f"this year's learners: loss {now_loss:.3f} accuracy {now_accuracy:.3f}")


main()
