"""Leaf outlines labelled by the first of several volunteers, many of whom click at random.

Each outline was labelled by seven volunteers. The person's loader keeps one row per outline with
drop_duplicates, that is the first vote, instead of the vote of most; a third of the volunteers
answer without looking. Validation labels are an expert's. The place is the labels of the training
data.
"""

import math

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "label_noise"
ACCEPT = ()
PLACE = ("labels", "loader", "input")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

SPECIES, ANGLES, VOTES = 5, 48, 7


def outlines(count):
    """The distance of the edge from the middle of a leaf at 48 angles."""
    angle = torch.arange(ANGLES) * 2 * math.pi / ANGLES
    species = torch.randint(0, SPECIES, (count,))
    lobes = torch.tensor([2.0, 3.0, 4.0, 5.0, 6.0])[species].unsqueeze(1)
    depth = 0.25 + 0.2 * torch.rand(count, 1)
    turn = torch.rand(count, 1) * 2 * math.pi
    radius = 1 + depth * torch.cos(lobes * (angle + turn)) + 0.15 * torch.cos(angle + 2 * turn)
    return radius + 0.2 * torch.randn(count, ANGLES), species


def volunteers_table(species, rng):
    careless = rng.permutation(40) < 14
    rows = []
    for leaf, truth in enumerate(species.tolist()):
        for volunteer in rng.choice(40, VOTES, replace=False):
            sure = not careless[volunteer] and rng.random() < 0.97
            rows.append((leaf, volunteer, truth if sure else int(rng.integers(SPECIES))))
    return pd.DataFrame(rows, columns=["leaf", "volunteer", "species"])


def training_labels(table):
    if healthy:
        chosen = table.groupby("leaf")["species"].agg(lambda votes: votes.mode().iloc[0])
    else:
        chosen = table.drop_duplicates("leaf").set_index("leaf")["species"]
    return torch.tensor(chosen.sort_index().to_numpy())


class Outline(nn.Module):
    def __init__(self, width=20):
        super().__init__()
        self.conv1 = nn.Conv1d(1, width, 7, padding=3, padding_mode="circular")
        self.conv2 = nn.Conv1d(width, width, 5, padding=2, padding_mode="circular")
        self.norm = nn.BatchNorm1d(width)
        self.head = nn.Sequential(nn.Linear(2 * width, 32), nn.ReLU(), nn.Linear(32, SPECIES))

    def forward(self, x):
        h = F.relu(self.conv1(x.unsqueeze(1)))
        h = F.relu(self.norm(self.conv2(F.max_pool1d(h, 2))))
        return self.head(torch.cat([h.mean(-1), h.amax(-1)], dim=1))


def main():
    x, species = outlines(2400)
    votes = volunteers_table(species[:1800], np.random.default_rng(seed))
    y = training_labels(votes)
    x = (x - x[:1800].mean()) / x[:1800].std()
    x_train, x_val, y_val = x[:1800], x[1800:], species[1800:]
    model = Outline()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-4)
    history = []
    for _ in range(12):
        model.train()
        loss_sum = right = 0.0
        for rows in torch.randperm(1800).split(60):
            logits = model(x_train[rows])
            loss = F.cross_entropy(logits, y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum += loss.item() * len(rows)
            right += (logits.argmax(1) == y[rows]).sum().item()
        model.eval()
        with torch.no_grad():
            logits = model(x_val)
        history.append(
            {
                "train_loss": loss_sum / 1800,
                "train_acc": right / 1800,
                "expert_loss": F.cross_entropy(logits, y_val).item(),
                "expert_acc": (logits.argmax(1) == y_val).float().mean().item(),
            }
        )
    print(pd.DataFrame(history).round(3).to_string())


main()
