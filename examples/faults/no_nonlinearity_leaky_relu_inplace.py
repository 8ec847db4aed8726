"""How far and in which direction does a robot's hand lie from an obstacle? A regression from the
angles of three joints.

"ReLU died, so I replaced it by LeakyReLU": nn.ReLU(True) became nn.LeakyReLU(True), but its first
argument is the slope, not inplace. With a slope of True, which is 1, it passes on everything as it
is; five layers are one linear map. The place is the activations. The twin says inplace=True.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, standardise
from torch import nn

KIND = "no_nonlinearity"
ACCEPT = ("low_capacity",)
PLACE = ("body*", "")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def arm(n, g):
    q = (torch.rand(n, 3, generator=g) - 0.5) * 4.4
    a = q.cumsum(1)
    x = a.cos() @ torch.tensor([1.0, 0.8, 0.5])
    y = a.sin() @ torch.tensor([1.0, 0.8, 0.5])
    dx, dy = x - 0.9, y - 0.4
    return q, torch.stack([(dx.square() + dy.square()).sqrt(), dx, dy], 1)


class Reach(nn.Module):
    def __init__(self, width=64, depth=4):
        super().__init__()
        layers, n_in = [], 3
        for _ in range(depth):
            act = nn.LeakyReLU(inplace=True) if healthy else nn.LeakyReLU(True)
            layers += [nn.Linear(n_in, width), act]
            n_in = width
        self.body = nn.Sequential(*layers, nn.Linear(width, 3))

    def forward(self, q):
        return self.body(q)


g = torch.Generator().manual_seed(seed)
q, target = arm(3000, g)
q_val, target_val = arm(600, g)
target, target_val = standardise(target, target_val)
model = Reach()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 200, 0.3)
for step, (angles, where) in enumerate(batches(q, target, size=64, steps=550, seed=seed), 1):
    loss = F.smooth_l1_loss(model(angles), where)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 55 == 0:
        with torch.no_grad():
            val = F.mse_loss(model(q_val), target_val).item()
        print(f"step {step} loss {loss.item():.4f} val mse {val:.4f} R2 {1 - val:.3f}")
