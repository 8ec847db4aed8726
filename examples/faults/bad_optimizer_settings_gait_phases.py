"""Which phase of a step a walking patient is in: the two betas of Adam are in the wrong order.

The settings come from a YAML file with "beta1" and "beta2", typed in from a table whose columns
stood the other way round. So the mean of the gradients is taken over a thousand steps and the
mean of their squares over ten. The place is the optimizer.
The twin has (0.9, 0.999).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "bad_optimizer_settings"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("optimizer",)
SILENT = True
EXACT = True
EARLY = True


def record(n, seed):
    """Three accelerations over 24 samples; five phases of the gait cycle."""
    g = torch.Generator().manual_seed(seed)
    cycle = torch.rand(n, 1, generator=g)
    pace = 0.02 + 0.012 * torch.rand(n, 1, generator=g)
    t = cycle + pace * torch.arange(-23, 1)
    a = torch.stack(
        [
            torch.sin(2 * math.pi * t) + 0.4 * torch.sin(4 * math.pi * t),
            torch.exp(-30 * ((t % 1) - 0.1) ** 2) * 2 - 0.5,
            torch.cos(2 * math.pi * t + 0.6),
        ],
        1,
    )
    a = a + 0.35 * torch.randn(a.shape, generator=g)
    return a, (cycle.squeeze(1) * 5).long()


class PhaseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv1d(3, 24, 5, padding=2)
        self.c2 = nn.Conv1d(24, 32, 5, stride=2, padding=2)
        self.fc = nn.Linear(32 * 12, 5)

    def forward(self, x):
        x = F.relu(self.c1(x))
        x = F.relu(self.c2(x))
        return self.fc(x.flatten(1))


def main():
    healthy, seed = arguments(__doc__)
    config = {"lr": 2e-3, "beta1": 0.9, "beta2": 0.999, "batch": 50, "epochs": 8}
    if not healthy:
        config.update(beta1=0.999, beta2=0.9)
    train = TensorDataset(*record(2000, 10 + seed))
    x_val, y_val = record(600, 900 + seed)
    model = PhaseNet()
    adam = torch.optim.Adam(
        model.parameters(), lr=config["lr"], betas=(config["beta1"], config["beta2"])
    )
    for epoch in range(config["epochs"]):
        model.train()
        seen = 0.0
        for x, y in DataLoader(train, batch_size=config["batch"], shuffle=True):
            loss = F.cross_entropy(model(x), y)
            adam.zero_grad()
            loss.backward()
            adam.step()
            seen += loss.item() * len(x)
        model.eval()
        with torch.no_grad():
            out = model(x_val)
        right = (out.argmax(1) == y_val).float().mean().item()
        print(
            f"[{epoch}] train {seen / len(train):.3f}  val {F.cross_entropy(out, y_val):.3f}"
            f"  accuracy {right:.3f}"
        )


if __name__ == "__main__":
    main()
