"""Foretells who wins a match, in half precision; the loss is scaled so far that gradients overflow.

The training multiplies the loss by a fixed number, so that small gradients are not lost in
float16, and leaves out a step whose gradients are not finite. The number was taken from a
model ten times as deep, where it was right. Here most steps overflow and are left out.
The place is the loop: the scale of the loss.
The twin scales by 1,024.
"""

import torch
from data import arguments
from torch import nn

KIND = "loss_scale_overflow"
ACCEPT = ()
PLACE = ("loss*", "loop", "optimizer")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

CONFIG = {
    "teams": 40,
    "width": 64,
    "batch": 128,
    "lr": 1e-3,
    "epochs": 10,
    "loss_scale": 2.0**10 if healthy else 2.0**21,
}


def matches(n, strength, generator):
    """Two teams, form of both, rest days of both; 1 when the first wins."""
    teams = torch.randint(0, len(strength), (n, 2), generator=generator)
    form = torch.randn(n, 2, generator=generator)
    rest = torch.randint(1, 8, (n, 2), generator=generator).float()
    edge = strength[teams[:, 0]] - strength[teams[:, 1]] + 0.6 * (form[:, 0] - form[:, 1])
    edge = 1.8 * edge + 0.3 * (rest[:, 0] - rest[:, 1]) + 0.4
    won = torch.rand(n, generator=generator) < edge.sigmoid()
    return teams, torch.cat([form, (rest - 4) / 2], 1), won.float()


class Forecaster(nn.Module):
    def __init__(self, teams, width):
        super().__init__()
        self.team = nn.Embedding(teams, 16)
        self.body = nn.Sequential(
            nn.Linear(36, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, 1)

    def forward(self, teams, numbers):
        known = torch.cat([self.team(teams).flatten(1), numbers], 1)
        return self.head(self.body(known)).squeeze(1)


g = torch.Generator().manual_seed(seed)
strength = torch.randn(CONFIG["teams"], generator=g)
teams, numbers, won = matches(4000, strength, g)
val = matches(1000, strength, g)
model = Forecaster(CONFIG["teams"], CONFIG["width"])
optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG["lr"])
scale = CONFIG["loss_scale"]

for epoch in range(CONFIG["epochs"]):
    total, left_out, count = 0.0, 0, 0
    for rows in torch.randperm(len(won)).split(CONFIG["batch"]):
        with torch.autocast("cpu", dtype=torch.float16):
            scores = model(teams[rows], numbers[rows])
        loss = nn.functional.binary_cross_entropy_with_logits(scores.float(), won[rows])
        optimizer.zero_grad()
        (loss * scale).backward()
        for p in model.parameters():
            p.grad.div_(scale)
        if all(p.grad.isfinite().all() for p in model.parameters()):
            optimizer.step()
        else:
            left_out += 1
        total += loss.item()
        count += 1
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.float16):
        right = ((model(*val[:2]) > 0) == (val[2] > 0.5)).float().mean()
    print(
        f"epoch {epoch + 1}: loss {total / count:.4f}, steps left out {left_out} of {count}, "
        f"validation accuracy {right:.3f}"
    )
