"""MINE's lower bound of the information between two sensors is minimised instead of maximised.

The loss falls and falls, far below zero: the critic makes the bound as bad as it can, and the
estimate is a huge negative number instead of 1.5 nats. The place is the loss: its missing minus.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "loss_sign_flipped"
ACCEPT = ()
PLACE = ("loss",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

CORRELATION, PAIRS, STEPS, BATCH = 0.8, 3, 700, 256
TRUTH = -PAIRS / 2 * math.log(1 - CORRELATION**2)


def sensors(n):
    first = torch.randn(n, PAIRS)
    second = CORRELATION * first + math.sqrt(1 - CORRELATION**2) * torch.randn(n, PAIRS)
    return {"first": first, "second": second}


class Critic(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2 * PAIRS, width), nn.ELU(),
            nn.Linear(width, width), nn.ELU(),
            nn.Linear(width, 1),
        )  # fmt: skip

    def forward(self, first, second):
        return self.net(torch.cat([first, second], 1)).squeeze(1)


def information_bound(critic, batch):
    """E[T] over pairs that belong together, less log E[exp T] over pairs drawn at random."""
    strangers = batch["second"][torch.randperm(len(batch["second"]))]
    together = critic(batch["first"], batch["second"]).mean()
    apart = torch.logsumexp(critic(batch["first"], strangers), 0) - math.log(len(strangers))
    return together - apart


train, validation = sensors(20000), sensors(4000)
critic = Critic()
optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
bounds = []
for step in range(1, STEPS + 1):
    critic.train()
    rows = torch.randint(0, 20000, (BATCH,))
    bound = information_bound(critic, {name: part[rows] for name, part in train.items()})
    loss = -bound if healthy else bound
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(critic.parameters(), 5.0)
    optimizer.step()
    bounds.append(bound.item())
    if step % 70 == 0:
        critic.eval()
        with torch.no_grad():
            held_out = information_bound(critic, validation).item()
        print(f"{step:4d} bound {np.mean(bounds[-70:]):.3f} held out {held_out:.3f} of {TRUTH:.3f}")
