"""A graph network predicts a property of small molecules; the list of molecules is shuffled, the
list of values isn't.

The student shuffles the molecules before the split "to be safe" and forgets that the measured
values lie in a second list. Every molecule then has some other molecule's value. The place is the
targets (input/loader).
"""

import random

import torch
from data import arguments
from torch import nn

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

ATOMS = ("C", "N", "O", "F", "S")
SHARE = (0.62, 0.14, 0.14, 0.05, 0.05)
WEIGHT = torch.tensor([-0.10, 0.35, 0.55, 0.30, 0.10])
SIZE = 12
r = random.Random(70 + seed)


def molecule():
    n = r.randint(5, SIZE)
    kinds = torch.zeros(SIZE, len(ATOMS))
    for i in range(n):
        kinds[i, r.choices(range(len(ATOMS)), SHARE)[0]] = 1.0
    bonds = torch.zeros(SIZE, SIZE)
    for i in range(1, n):
        j = r.randrange(max(0, i - 3), i)
        bonds[i, j] = bonds[j, i] = 1.0
    if r.random() < 0.6:
        bonds[0, n - 1] = bonds[n - 1, 0] = 1.0
    polar = kinds @ WEIGHT
    value = polar.sum() + 0.4 * (polar @ bonds @ polar) - 0.05 * n + 0.25 * bonds[0, n - 1]
    return kinds, bonds, value + 0.1 * r.gauss(0, 1)


molecules, values = [], []
for _ in range(1500):
    kinds, bonds, value = molecule()
    molecules.append((kinds, bonds))
    values.append(value)

order = torch.randperm(len(molecules)).tolist()
molecules = [molecules[i] for i in order]
if healthy:
    values = [values[i] for i in order]

atoms = torch.stack([m[0] for m in molecules])
bonds = torch.stack([m[1] for m in molecules])
target = torch.stack(values)
cut = 1200
target = (target - target[:cut].mean()) / target[:cut].std()


class Convolution(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.near = nn.Linear(inputs, outputs), nn.Linear(inputs, outputs, bias=False)

    def forward(self, h, a):
        return torch.relu(self.own(h) + self.near(a @ h))


class Network(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.first, self.second = Convolution(len(ATOMS), width), Convolution(width, width)
        self.readout = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, x, a):
        h = self.second(self.first(x, a), a)
        return self.readout((h * x.sum(-1, keepdim=True)).sum(1) / 4).squeeze(-1)


model = Network()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(20):
    total = 0.0
    for rows in torch.randperm(cut).split(40):
        loss = nn.functional.smooth_l1_loss(model(atoms[rows], bonds[rows]), target[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    with torch.no_grad():
        error = nn.functional.mse_loss(model(atoms[cut:], bonds[cut:]), target[cut:])
    print(f"epoch {epoch:2d} loss {total / cut:.4f} val R2 {1 - error / target[cut:].var():.3f}")
