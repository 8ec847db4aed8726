"""Inverse dynamics of a two-joint arm, a trainer with callbacks: the gradients are cleared too
soon.

The clearing became a callback like clipping and logging, and it was registered for "after_backward"
(that was its line in the old loop, counted from the other side). Each `step()` finds that all
gradients are gone, and the torques stay those of the untrained network. The place is the loop. The
twin registers the clearing for "after_step".
"""

from collections import defaultdict

import torch
from data import arguments
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def arm(count, g):
    """Angles, speeds and wished accelerations of both joints; the torques they need."""
    angle = 3 * (2 * torch.rand(count, 2, generator=g) - 1)
    speed, wish = torch.randn(count, 2, generator=g), torch.randn(count, 2, generator=g)
    c, s = angle[:, 1].cos(), angle[:, 1].sin()
    a, b = 1.6 + 1.0 * c, 0.5 + 0.5 * c
    pull = 0.8 * (angle[:, 0] + angle[:, 1]).cos()
    first = (
        a * wish[:, 0] + b * wish[:, 1] - s * (speed[:, 0] * speed[:, 1] + 0.5 * speed[:, 1] ** 2)
    )
    first = first + 2.0 * angle[:, 0].cos() + pull
    second = b * wish[:, 0] + 0.5 * wish[:, 1] + 0.5 * s * speed[:, 0] ** 2 + pull
    torque = torch.stack([first, second], 1)
    return torch.cat([angle.sin(), angle.cos(), speed, wish], 1), torque + 0.05 * torch.randn(
        count, 2, generator=g
    )


class Loop:
    """Calls whatever is registered around the backward pass and the step."""

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.hooks = defaultdict(list)

    def on(self, event, action):
        self.hooks[event].append(action)

    def fire(self, event):
        for action in self.hooks[event]:
            action()

    def run(self, batches):
        self.model.train()
        losses = []
        for x, y in batches:
            loss = nn.functional.smooth_l1_loss(self.model(x), y)
            loss.backward()
            self.fire("after_backward")
            self.optimizer.step()
            self.fire("after_step")
            losses.append(loss.detach())
        return torch.stack(losses).mean()


g = torch.Generator().manual_seed(seed)
x, torque = arm(4000, g)
x_val, torque_val = arm(800, g)
model = nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 2))
optimizer = torch.optim.RMSprop(model.parameters(), lr=4e-3)
decay = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
loop = Loop(model, optimizer)
loop.on("after_backward", lambda: nn.utils.clip_grad_norm_(model.parameters(), 5.0))
loop.on("after_step" if healthy else "after_backward", optimizer.zero_grad)

for epoch in range(14):
    order = torch.randperm(len(x), generator=g).split(80)
    loss = loop.run((x[rows], torque[rows]) for rows in order)
    decay.step()
    model.eval()
    with torch.no_grad():
        off = (model(x_val) - torque_val).pow(2).mean().sqrt()
    print(f"epoch {epoch} loss {loss:.4f} validation error {off:.3f} Nm")
