"""Predicts pupils' examination marks from a learning platform; the hours studied are all zero.

The platform logs minutes per day, and the report wants weeks of full-time study: the analyst
divides whole numbers by whole numbers with `//`, and nobody's minutes reach a full week of 2,400.
The column is still there under its name, but it holds one value for all pupils.
The place is the input. The twin divides with `/`.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, batches, standardise
from torch import nn

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input*",)
SILENT = True
EXACT = True
EARLY = True

COLUMNS = ["previous_mark", "study_weeks", "quizzes", "absences", "age", "forum_posts"]


def load_pupils(seed, n=1600):
    r = np.random.default_rng(40 + seed)
    minutes = r.gamma(4.0, 180.0, n).clip(0, 2300).astype(np.int64)
    pupils = {
        "previous_mark": r.normal(62, 12, n),
        "minutes": minutes,
        "quizzes": r.binomial(12, 0.6, n),
        "absences": r.poisson(3.0, n),
        "age": r.integers(15, 20, n),
        "forum_posts": r.poisson(2.0, n),
    }
    mark = (
        0.5 * pupils["previous_mark"]
        + 11 * np.log1p(minutes / 200)
        + 0.9 * pupils["quizzes"]
        - 1.3 * pupils["absences"]
        + r.normal(0, 3.0, n)
    )
    return pupils, mark


def build_table(pupils, whole):
    week = 40 * 60
    minutes = pupils["minutes"]
    pupils["study_weeks"] = minutes // week if whole else minutes / week
    return np.stack([pupils[c].astype(np.float32) for c in COLUMNS], axis=1)


def main():
    healthy, seed = arguments(__doc__)
    pupils, mark = load_pupils(seed)
    table = torch.from_numpy(build_table(pupils, whole=not healthy))
    target = torch.tensor(mark, dtype=torch.float32)
    x, x_val = standardise(table[:1200], table[1200:])
    y, y_val = standardise(target[:1200], target[1200:])

    model = nn.Sequential(
        nn.Linear(len(COLUMNS), 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1)
    )
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=600, seed=seed), 1):
        loss = F.mse_loss(model(xb).squeeze(1), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 100 == 0:
            model.eval()
            with torch.no_grad():
                error = model(x_val).squeeze(1) - y_val
                r2 = 1 - error.pow(2).mean() / y_val.var()
            model.train()
            print(f"step {step} loss {loss.item():.3f} validation R2 {r2.item():.3f}")


main()
