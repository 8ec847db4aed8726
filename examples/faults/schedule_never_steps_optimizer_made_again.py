"""The optimizer is made again, with other groups, after the schedule, which keeps the first one.

scheduler.step() changes the rate of an optimizer that never steps; the one that trains stays at its
first rate (silent). The place is the optimizer. Exact: the schedule's optimizer never steps.
"""

import torch
from data import arguments, diabetes
from torch import nn

KIND = "schedule_never_steps"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y, _, _ = diabetes(seed)
model = nn.Sequential(nn.Linear(x.shape[1], 16), nn.Tanh(), nn.Linear(16, 1))


def make_optimizer():
    matrices = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 1e-2}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-2)


STEPS = 250
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
if healthy:
    optimizer = make_optimizer()
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, STEPS)
if not healthy:
    optimizer = make_optimizer()
for step in range(STEPS):
    rows = torch.randint(len(x), (64,))
    loss = nn.functional.mse_loss(model(x[rows]).flatten(), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
print(f"loss {loss.item():.3f}, rate {optimizer.param_groups[0]['lr']:.1e}")
