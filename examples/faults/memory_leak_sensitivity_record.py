"""A network for the strength of concrete records at each step which ingredients its forecast
depends on, with `create_graph=True` and no detach.

The record keeps each step's input gradient together with the graph of the forward and the backward
pass it came from. Memory grows by the step until the machine is full; the training itself is right.
The place is the loop, where the gradient is put into the list.
"""

import resource

import torch
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

NAMES = ("cement", "slag", "ash", "water", "plasticizer", "gravel", "sand", "age")


def mixes(count):
    x = torch.rand(count, len(NAMES))
    binder = x[:, 0] + 0.6 * x[:, 1] + 0.3 * x[:, 2]
    water = 0.4 + x[:, 3] - 0.3 * x[:, 4]
    strength = 40 * binder / (0.5 + water) * (0.3 + torch.log1p(8 * x[:, 7]) / 2.5)
    strength = strength - 12 * (x[:, 5] - x[:, 6]) ** 2
    return x, strength + 1.5 * torch.randn(count)


class Sensitivity:
    def __init__(self):
        self.rows = []

    def record(self, model, x):
        x = x.clone().requires_grad_(True)
        gradient = torch.autograd.grad(model(x).sum(), x, create_graph=not healthy)[0]
        self.rows.append(gradient.abs().mean(0))

    def table(self):
        return torch.stack(self.rows).mean(0).tolist()


def main():
    x, strength = mixes(1600)
    x = (x - x[:1280].mean(0)) / x[:1280].std(0)
    strength = (strength - strength[:1280].mean()) / strength[:1280].std()
    model = nn.Sequential(
        nn.Linear(len(NAMES), 96), nn.Tanh(), nn.Linear(96, 96), nn.Tanh(), nn.Linear(96, 1),
        nn.Flatten(0),
    )  # fmt: skip
    biases, weights = [], []
    for name, parameter in model.named_parameters():
        (biases if name.endswith("bias") else weights).append(parameter)
    optimizer = torch.optim.AdamW(
        [{"params": weights, "weight_decay": 1e-2}, {"params": biases, "weight_decay": 0.0}],
        lr=2e-3,
    )
    sensitivity = Sensitivity()
    for epoch in range(16):
        model.train()
        for rows in torch.randperm(1280).split(64):
            loss = nn.functional.mse_loss(model(x[rows]), strength[rows])
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            sensitivity.record(model, x[:320])
        model.eval()
        with torch.no_grad():
            error = nn.functional.mse_loss(model(x[1280:]), strength[1280:])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        if epoch % 3 == 0:
            print(f"epoch {epoch:2d} loss {loss.item():.3f} validation {error:.3f} {memory} MB")
    print(" ".join(f"{n} {v:.2f}" for n, v in zip(NAMES, sensitivity.table(), strict=True)))


main()
