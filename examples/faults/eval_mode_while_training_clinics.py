"""Clinics train copies of a common network that was just judged, and so without its dropout.

Judging puts the common network into evaluation mode and the copies inherit it, so from the second
round on no clinic trains with dropout. The common network overfits the few patients. The place is
the loop: the mode of the model.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.datasets import make_classification
from torch import nn

KIND = "eval_mode_while_training"
ACCEPT = ()
PLACE = ("loop", "model", "*")
SILENT = True
EXACT = True
EARLY = False
healthy, seed = arguments(__doc__)

CLINICS, ROUNDS, LOCAL_EPOCHS = 6, 25, 2


def patients():
    x, y = make_classification(
        n_samples=900,
        n_features=40,
        n_informative=8,
        n_redundant=4,
        n_clusters_per_class=3,
        class_sep=1.1,
        flip_y=0.08,
        random_state=seed,
    )
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


def network(width=128):
    return nn.Sequential(
        nn.Linear(40, width),
        nn.ReLU(),
        nn.Dropout(0.6),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Dropout(0.6),
        nn.Linear(width, 2),
    )


def local_training(common, x, y, g):
    model = copy.deepcopy(common)
    if healthy:
        model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for _ in range(LOCAL_EPOCHS):
        for rows in torch.randperm(len(x), generator=g).split(16):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
    return model.state_dict(), total / len(x) / LOCAL_EPOCHS


def averaged(states):
    return {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}


def judged(model, x, y):
    model.eval()
    with torch.no_grad():
        scores = model(x)
    right = (scores.argmax(1) == y).float().mean().item()
    return F.cross_entropy(scores, y).item(), right


def main():
    g = torch.Generator().manual_seed(seed)
    x, y = patients()
    order = torch.randperm(len(x), generator=g)
    train, val = order[:300], order[300:]
    x_train, x_val = standardise(x[train], x[val])
    y_train, y_val = y[train], y[val]
    clinics = torch.arange(len(train)).chunk(CLINICS)
    common = network()
    for number in range(ROUNDS):
        states, losses = zip(
            *(local_training(common, x_train[rows], y_train[rows], g) for rows in clinics),
            strict=True,
        )
        common.load_state_dict(averaged(states))
        held_out, right = judged(common, x_val, y_val)
        if number % 5 == 4:
            print(
                f"round {number + 1:2d}  clinics {sum(losses) / CLINICS:.4f}  "
                f"common, other patients: loss {held_out:.4f}  right {right:.3f}"
            )


main()
