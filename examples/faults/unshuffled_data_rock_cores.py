"""Rocks of drill cores by 16 element counts; the rows come to the network rock by rock.

The laboratory delivers one sheet for each rock, np.concatenate joins them, and the loop walks
through the table from top to bottom. At the end of an epoch the network says "slate" to all.
The place is the loader. The twin draws a new order in each epoch.
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "label*", "input*", "loop")
SILENT = True
EXACT = False
EARLY = True

ROCKS = ("granite", "basalt", "gneiss", "limestone", "sandstone", "slate")


def sheets(seed, rows, shift=0):
    r = np.random.default_rng(seed + shift)
    typical = np.random.default_rng(5).normal(0, 0.8, (len(ROCKS), 16))
    x = np.concatenate([typical[k] + r.normal(0, 1, (rows, 16)) for k in range(len(ROCKS))])
    y = np.concatenate([np.full(rows, k) for k in range(len(ROCKS))])
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def batches(x, y, size, shuffle):
    order = torch.randperm(len(x)) if shuffle else torch.arange(len(x))
    for start in range(0, len(x), size):
        rows = order[start : start + size]
        yield x[rows], y[rows]


def main():
    healthy, seed = arguments(__doc__)
    x, y = sheets(seed, 300)
    x_val, y_val = sheets(seed, 60, shift=1000)
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 6))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(12):
        model.train()
        losses = []
        for xb, yb in batches(x, y, 30, shuffle=healthy):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        model.eval()
        with torch.no_grad():
            right = (model(x_val).argmax(1) == y_val).float().mean().item()
        if epoch % 2:
            print(f"epoch {epoch}: loss {np.mean(losses):.3f} validation {right:.3f}")


if __name__ == "__main__":
    main()
