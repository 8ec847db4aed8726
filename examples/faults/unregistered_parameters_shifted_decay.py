"""A diagonal state-space model that recalls an early pulse; its decays are no parameters of the
module.

So that the rates begin at the values of the paper, an offset was added to `nn.Parameter(...)` in
the constructor. The sum is a plain tensor: it has a graph back to a leaf that nobody holds,
`parameters()` does not list it, no optimizer moves it. The memory stays as short as at the start.
The place is the tensor `layer.log_rate`. The twin puts the offset inside the parentheses.
"""

import torch
from data import arguments
from torch import nn

KIND = "unregistered_parameters"
ACCEPT = ("parameters_not_in_optimizer",)
PLACE = ("layer", "layer.log_rate", "optimizer")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
LENGTH = 30


class Diagonal(nn.Module):
    """h' = exp(-rate) h + drive(x), per channel."""

    def __init__(self, inputs, states):
        super().__init__()
        offset = torch.linspace(-1.7, 1.2, states)
        if healthy:
            self.log_rate = nn.Parameter(torch.zeros(states) + offset)
        else:
            self.log_rate = nn.Parameter(torch.zeros(states)) + offset
        self.drive = nn.Linear(inputs, states)

    def forward(self, x):
        keep = torch.exp(-self.log_rate.exp())
        state, states = 0.0, []
        for drive in self.drive(x).unbind(1):
            state = keep * state + (1 - keep) * drive
            states.append(state)
        return torch.stack(states, 1)


class Recall(nn.Module):
    def __init__(self, states=24):
        super().__init__()
        self.layer = Diagonal(2, states)
        self.head = nn.Sequential(nn.Linear(states, 32), nn.SiLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.head(self.layer(x)[:, -1]).squeeze(-1)


def pulses(count):
    """Noise with a marked pulse in the first third; its height is to be told at the end."""
    x = torch.stack([0.15 * torch.randn(count, LENGTH), torch.zeros(count, LENGTH)], -1)
    at, height = torch.randint(2, 10, (count,)), torch.randn(count)
    rows = torch.arange(count)
    x[rows, at, 0] += height
    x[rows, at, 1] = 1.0
    x[rows, at + 1, 0] += height
    return x, height + 0.05 * torch.randn(count)


def stream(x, y, size):
    while True:
        for rows in torch.randperm(len(x)).split(size):
            yield x[rows], y[rows]


(x, y), (x_val, y_val) = pulses(2000), pulses(500)
model = Recall()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-2, total_steps=500)

for step, (xb, yb) in zip(range(500), stream(x, y, 50), strict=False):
    model.train()
    loss = nn.functional.mse_loss(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    if step % 50 == 49:
        model.eval()
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        print(
            f"step {step + 1} loss {loss.item():.4f} val mse {val:.4f} "
            f"of variance {y_val.var().item():.3f}"
        )
print(f"validation mse {val:.4f}")
