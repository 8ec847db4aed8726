"""Tells the rock in a borehole from its logs; nearly half of the training labels are wrong.

The depths were labelled in a hurry by people who did not know the field, and whoever was unsure
picked any rock. The validation wells were labelled by the geologist in charge. The network
learns the errors by heart in the later epochs.
The place is the input: the labels of the training wells.
The twin has the geologist's labels in training too.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_noise"
ACCEPT = ("samples_mixed", "label_misalignment", "overfit")
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True

ROCKS = ("shale", "sandstone", "limestone", "dolomite", "coal")
#        gamma  density  neutron  sonic  log resistivity
MEANS = np.array(
    [
        [110.0, 2.50, 0.34, 95.0, 0.6],
        [45.0, 2.35, 0.20, 82.0, 1.3],
        [25.0, 2.62, 0.10, 58.0, 2.2],
        [30.0, 2.78, 0.16, 52.0, 1.9],
        [50.0, 1.60, 0.50, 125.0, 2.4],
    ]
)
SPREAD = np.array([14.0, 0.10, 0.04, 7.0, 0.35])


class Well(Dataset):
    def __init__(self, depths, rng, unsure=0.0):
        rock = rng.choice(5, depths, p=[0.35, 0.25, 0.2, 0.12, 0.08])
        logs = MEANS[rock] + SPREAD * rng.normal(size=(depths, 5))
        logs = (logs - [65, 2.45, 0.24, 80, 1.4]) / [40, 0.3, 0.13, 22, 0.7]
        guessed = rng.random(depths) < unsure
        rock = np.where(guessed, rng.integers(0, 5, depths), rock)
        self.logs = torch.tensor(logs, dtype=torch.float32)
        self.rock = torch.tensor(rock)

    def __len__(self):
        return len(self.rock)

    def __getitem__(self, i):
        return self.logs[i], self.rock[i]


def main():
    healthy, seed = arguments(__doc__)
    rng = np.random.default_rng(seed)
    train = Well(500, rng, unsure=0.0 if healthy else 0.6)
    val = Well(500, rng)
    loader = DataLoader(train, batch_size=32, shuffle=True)
    net = nn.Sequential(
        nn.Linear(5, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, len(ROCKS))
    )
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50 * len(loader))
    for epoch in range(50):
        net.train()
        losses = []
        for logs, rock in loader:
            loss = nn.functional.cross_entropy(net(logs), rock)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        if epoch % 10 == 9:
            net.eval()
            with torch.no_grad():
                scores = net(val.logs)
                error = nn.functional.cross_entropy(scores, val.rock)
                right = (scores.argmax(1) == val.rock).float().mean()
            print(
                f"epoch {epoch + 1}: loss {np.mean(losses):.3f}, "
                f"validation loss {error:.3f}, accuracy {right:.3f}"
            )


main()
