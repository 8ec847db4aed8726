"""Federated averaging on digits over ten clients, each with only a few of the classes.

Looks odd: a client's batches hold only two or three classes, each round loads weights from
outside into the client's model, the optimizer is made anew each round without its momentum, and
the weights jump when the server averages. It's sound: that's FedAvg with few local steps; the
server's model learns steadily and reaches a good accuracy.
"""

import copy
from collections import OrderedDict

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

ODD = "batches of two classes; each round loads weights from outside and makes its optimizer anew"
_, seed = arguments(__doc__)

CLIENTS, PER_ROUND, ROUNDS, LOCAL_EPOCHS, BATCH = 10, 6, 45, 1, 16


def make_model() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.GroupNorm(4, 16),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.GroupNorm(4, 32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def dirichlet_shards(
    y: torch.Tensor, rng: np.random.Generator, alpha: float = 0.3
) -> list[list[int]]:
    shards: list[list[int]] = [[] for _ in range(CLIENTS)]
    for c in range(10):
        rows = rng.permutation(np.flatnonzero(y.numpy() == c))
        cuts = (np.cumsum(rng.dirichlet(np.full(CLIENTS, alpha)))[:-1] * len(rows)).astype(int)
        for shard, part in zip(shards, np.split(rows, cuts), strict=False):
            shard.extend(part.tolist())
    return [s for s in shards if len(s) >= BATCH]


class Client:
    def __init__(self, data: Subset):
        self.data = data
        self.loader = DataLoader(data, BATCH, shuffle=True, drop_last=True)

    def train(self, weights, lr: float):
        model = make_model()
        model.load_state_dict(weights)
        model.train()
        optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.5)
        losses = []
        for _ in range(LOCAL_EPOCHS):
            for x, y in self.loader:
                loss = F.cross_entropy(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        return model.state_dict(), len(self.data), np.mean(losses)


def average(results) -> OrderedDict:
    total = sum(n for _, n, _ in results)
    return OrderedDict((k, sum(w[k] * (n / total) for w, n, _ in results)) for k in results[0][0])


x, y, x_val, y_val = images(seed)
rng = np.random.default_rng(seed)
dataset = TensorDataset(x, y)
clients = [Client(Subset(dataset, rows)) for rows in dirichlet_shards(y, rng)]
for i, c in enumerate(clients):
    print(
        f"client {i}: {len(c.data)} images, classes {torch.bincount(y[c.data.indices], minlength=10).tolist()}"  # noqa: E501
    )

server = make_model()
for rnd in range(ROUNDS):
    lr = 0.05 * 0.98**rnd
    chosen = rng.choice(len(clients), min(PER_ROUND, len(clients)), replace=False)
    weights = copy.deepcopy(server.state_dict())
    results = [clients[i].train(weights, lr) for i in chosen]
    server.load_state_dict(average(results))
    server.eval()
    with torch.no_grad():
        logits = server(x_val)
    if rnd % 3 == 2:
        print(
            f"round {rnd:2d} local loss {np.mean([r[2] for r in results]):.4f} "
            f"val loss {F.cross_entropy(logits, y_val):.4f} acc {(logits.argmax(1) == y_val).float().mean():.4f}"  # noqa: E501
        )
