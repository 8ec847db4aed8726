"""Oxygen in a lake from a profile of soundings; zero_grad() stands between backward() and step().

The line was moved up "so that the gradients are clean for the step". They are: step() finds none
and changes nothing, without a complaint.
The place is the loop. The twin clears before backward().
"""

import torch
from data import arguments
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True


class LakeNet(nn.Module):
    def __init__(self, depths=24):
        super().__init__()
        self.lstm = nn.LSTM(3, 32, batch_first=True)
        self.dense = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.dense(self.lstm(x)[0]).squeeze(-1)


def profiles(n, g):
    depth = torch.linspace(0, 1, 24).expand(n, 24)
    layer = 0.3 + 0.4 * torch.rand(n, 1, generator=g)
    warm = 1 / (1 + ((depth - layer) * 14).exp())
    algae = torch.rand(n, 1, generator=g) * torch.exp(-((depth - 0.5 * layer) ** 2) * 40)
    oxygen = 0.4 + 0.6 * warm + 0.8 * algae - 0.5 * torch.cumsum(algae, 1) / 6
    x = torch.stack([warm * 2 - 1, algae * 3 - 0.5, depth * 2 - 1], -1)
    x = x + 0.05 * torch.randn(x.shape, generator=g)
    return x, (oxygen - oxygen.mean()) / oxygen.std()


def run(model, x, y, optimizer, healthy):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(40):
        loss = nn.functional.l1_loss(model(x[rows]), y[rows])
        if healthy:
            optimizer.zero_grad()
            loss.backward()
        else:
            loss.backward()
            optimizer.zero_grad()
        optimizer.step()
        total += loss.item() * len(rows)
    return total / len(x)


def main():
    healthy, seed = arguments(__doc__)
    x, y = profiles(1000, torch.Generator().manual_seed(seed))
    model = LakeNet()
    optimizer = torch.optim.NAdam(model.parameters(), lr=3e-3)
    for epoch in range(10):
        loss = run(model, x[:800], y[:800], optimizer, healthy)
        model.eval()
        with torch.no_grad():
            val = nn.functional.l1_loss(model(x[800:]), y[800:]).item()
        print(f"epoch {epoch}: train {loss:.4f} validation {val:.4f}")


if __name__ == "__main__":
    main()
