"""Who wins a race game, judged from its board by a value network: Adam's betas stand in the wrong
order.

Our factory takes `beta2, beta1` (the order of the alphabet in the sweep's file, it seems), and the
call passes them by position: 0.999 smooths the gradient, 0.9 its square. The step follows what the
gradient was a thousand steps ago and the values swing past their aim again and again. The place is
the optimizer. The twin names the arguments.
"""

import torch
from data import arguments
from torch import nn

KIND = "bad_optimizer_settings"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH, PIECES = 24, 4


def games(count, g):
    """Where four pieces of either side stand, whose turn it is, and how dice played the rest."""
    mine = torch.randint(0, LENGTH, (count, PIECES), generator=g)
    theirs = torch.randint(0, LENGTH, (count, PIECES), generator=g)
    turn = torch.randint(0, 2, (count,), generator=g)
    meets = (mine[:, :, None] - theirs[:, None, :]).float()
    danger = ((meets > 0) & (meets <= 6)).sum((1, 2)) - ((meets < 0) & (meets >= -6)).sum((1, 2))
    lead = (mine.float().mean(1) - theirs.float().mean(1)) / 3 + 0.35 * danger + 0.8 * (turn - 0.5)
    rolls = torch.randn(count, generator=g)
    return mine, theirs, turn, torch.tanh(0.5 * lead + 0.15 * rolls)


def encode(mine, theirs, turn):
    planes = [nn.functional.one_hot(side, LENGTH).sum(1).float() for side in (mine, theirs)]
    return torch.cat([*planes, turn[:, None].float()], 1)


class Value(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.sides = nn.Conv1d(2, 16, 7, padding=3)
        self.hidden = nn.Linear(16 * LENGTH + 1, width)
        self.value = nn.Linear(width, 1)

    def forward(self, x):
        planes, turn = x[:, :-1].view(len(x), 2, LENGTH), x[:, -1:]
        h = torch.relu(self.sides(planes)).flatten(1)
        return torch.tanh(self.value(torch.relu(self.hidden(torch.cat([h, turn], 1)))))[:, 0]


def make_adam(parameters, lr, beta2=0.999, beta1=0.9):
    return torch.optim.Adam(parameters, lr=lr, betas=(beta1, beta2))


SETTINGS = {"lr": 2e-3, "beta1": 0.9, "beta2": 0.999}
g = torch.Generator().manual_seed(seed)
*boards, outcome = games(6000, g)
x = encode(*boards)
*boards, outcome_val = games(1200, g)
x_val = encode(*boards)
model = Value()
optimizer = (
    make_adam(model.parameters(), **SETTINGS)
    if healthy
    else make_adam(model.parameters(), *SETTINGS.values())
)
step, running = 0, 0.0
for epoch in range(6):
    for rows in torch.randperm(len(x), generator=g).split(60):
        model.train()
        loss = nn.functional.mse_loss(model(x[rows]), outcome[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running, step = running + loss.item(), step + 1
    model.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(model(x_val), outcome_val)
    print(
        f"step {step} loss {running / 100:.4f} val loss {val:.4f} "
        f"validation R2 {1 - val / outcome_val.var():.3f}"
    )
    running = 0.0
