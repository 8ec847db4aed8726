"""A hypernetwork writes the weights of a small regression net for each of many tasks (sine
waves)."""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "the net that does the work has no parameters of its own; its weights are outputs of "
    "another net, with a gradient but in no optimizer"
)

_, seed = arguments(__doc__)
HIDDEN = 16
SIZES = (HIDDEN, HIDDEN, HIDDEN, 1)  # w1, b1, w2, b2 of a 1-16-1 net


class Hyper(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(2, 48), nn.ReLU(), nn.Linear(48, 48), nn.ReLU())
        self.write = nn.Linear(48, sum(SIZES))
        base = torch.cat(
            [
                2 * torch.randn(HIDDEN),
                torch.randn(HIDDEN),
                0.2 * torch.randn(HIDDEN),
                torch.zeros(1),
            ]
        )
        self.base = nn.Parameter(base)
        nn.init.normal_(self.write.weight, std=0.02)
        nn.init.zeros_(self.write.bias)

    def forward(self, task, t):
        w1, b1, w2, b2 = (self.base + self.write(self.trunk(task))).split(SIZES, dim=1)
        h = torch.tanh(t.unsqueeze(-1) * w1.unsqueeze(1) + b1.unsqueeze(1))
        return (h * w2.unsqueeze(1)).sum(-1) + b2


def tasks(n):
    amplitude, phase = 0.5 + torch.rand(n, 1), 3.14 * torch.rand(n, 1)
    t = 4 * torch.rand(n, 20) - 2
    return torch.cat([2 * amplitude - 2, phase - 1.57], 1), t, amplitude * torch.sin(2 * t + phase)


hyper = Hyper()
optimizer = torch.optim.Adam(hyper.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 700)
test = tasks(200)
for step in range(700):
    task, t, wave = tasks(32)
    loss = F.mse_loss(hyper(task, t), wave)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 100 == 99:
        with torch.no_grad():
            val = F.mse_loss(hyper(*test[:2]), test[2]).item()
print(f"loss {loss.item():.4f}, validation loss {val:.4f}, variance {test[2].var():.3f}")
