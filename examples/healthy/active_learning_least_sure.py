"""Asks for the labels of digits that the net is least sure of, and trains anew in each round."""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn

ODD = (
    "each round starts a new net on few rows that it learns by heart, the labelled rows are the "
    "hardest ones and not like the test rows, and the unlabelled pool is looked at on purpose"
)
FIRST, ADDED, ROUNDS = 40, 20, 7
_, seed = arguments(__doc__)
torch.set_num_threads(1)


def fit(x, y, steps: int = 120):
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.05)
    for _ in range(steps):
        rows = torch.randint(len(x), (min(32, len(x)),))
        optimizer.zero_grad()
        F.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
    return model.eval()


@torch.no_grad()
def least_sure(model, pool):
    best = model(pool).softmax(1).topk(2).values
    return (best[:, 0] - best[:, 1]).argsort()[:ADDED]


@torch.no_grad()
def accuracy(model):
    return (model(x_test).argmax(1) == y_test).float().mean().item()


def learn(choose):
    labelled = torch.zeros(len(x), dtype=torch.bool)
    labelled[start] = True
    history = []
    for round_ in range(ROUNDS):
        model = fit(x[labelled], y[labelled])
        history.append(accuracy(model))
        if round_ < ROUNDS - 1:
            pool = (~labelled).nonzero().squeeze(1)
            labelled[pool[choose(model, x[pool])]] = True
    return history


x, y, x_test, y_test = digits(seed)
start = torch.randperm(len(x))[:FIRST]
asked = learn(least_sure)
by_chance = learn(lambda _, pool: torch.randperm(len(pool))[:ADDED])
for round_, (active, random_rows) in enumerate(zip(asked, by_chance, strict=False)):
    print(f"{FIRST + round_ * ADDED} labels: least sure {active:.3f}, at random {random_rows:.3f}")
print(
    f"with {FIRST + ADDED * (ROUNDS - 1)} labels {asked[-1]:.3f}, at random {by_chance[-1]:.3f}, "
    f"of {len(x)} rows"
)
