"""A 1-d CNN hears the machine fault in vibration records; its BatchNorm layers have momentum
0.0005.

The author wanted smooth statistics, and gave the newest batch a weight of 0.0005: after 1000
steps the running means and variances are still more than half what they were made with (0 and 1),
and the evaluation is far worse than the training. The place is the batch-norm layers
(stages.*.norm).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "batchnorm_momentum"
ACCEPT = ()
PLACE = ("stages*norm", "*norm*")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)
MOMENTUM = 0.1 if healthy else 0.0005


def vibrations(n, g):
    """Half a second of a bearing: sound, inner ring, outer ring, ball, or imbalance; speed and
    load vary.
    """
    y = torch.randint(0, 5, (n,), generator=g)
    t = torch.arange(128.0)

    def r(a, b):
        return a + (b - a) * torch.rand(n, 1, generator=g)

    turn, load = r(0.12, 0.18), torch.exp(0.4 * torch.randn(n, 1, generator=g))
    phase = r(0, 6.28)

    def knock(rate):
        return (torch.cos(rate * turn * t + phase) > 0.85).float() * torch.cos(1.9 * t)

    parts = torch.stack(
        [
            torch.zeros(n, 128),
            1.2 * knock(5.4),
            1.2 * knock(3.6),
            1.2 * knock(2.3) * (1 + torch.cos(0.4 * turn * t)),
            1.2 * torch.cos(turn * t + phase),
        ]
    )
    x = (
        parts[y, torch.arange(n)]
        + 0.5 * torch.cos(2 * turn * t)
        + 0.2 * torch.randn(n, 128, generator=g)
    )
    return (load * x).unsqueeze(1), y


class Stage(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.conv = nn.Conv1d(cin, cout, 9, stride=stride, padding=4, bias=False)
        self.norm = nn.BatchNorm1d(cout, momentum=MOMENTUM)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class Bearing(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.Sequential(Stage(1, 16, 2), Stage(16, 24, 2), Stage(24, 32, 2))
        self.fault = nn.Linear(32, 5)

    def forward(self, x):
        return self.fault(self.stages(x).mean(2))


class Trainer:
    def __init__(self, model, train, val):
        self.model, self.train, self.val = model, train, val
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def fit(self, epochs):
        x, y = self.train
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for rows in torch.randperm(len(x)).split(16):
                loss = F.cross_entropy(self.model(x[rows]), y[rows])
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                total += loss.item() * len(rows) / len(x)
            self.model.eval()
            with torch.no_grad():
                logits = self.model(self.val[0])
            val = F.cross_entropy(logits, self.val[1]).item()
            hit = (logits.argmax(1) == self.val[1]).float().mean().item()
            print(f"epoch {epoch} train {total:.4f} val {val:.4f} accuracy {hit:.3f}")


g = torch.Generator().manual_seed(seed)
Trainer(Bearing(), vibrations(2400, g), vibrations(500, g)).fit(7)
