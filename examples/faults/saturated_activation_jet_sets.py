"""A deep-sets net tells jets apart; sums instead of means drive its tanh layers to 1 and -1.

Every jet has 80 particles. Their summed features are dozens of units large, so the tanh layers
that follow sit on their flat ends and hardly a gradient reaches the particle layers.
The place is the tanh behind `summary` (act1).
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "saturated_activation"
ACCEPT = ("vanishing_gradient",)
PLACE = ("act1", "act2", "summary", "decide", "particle", "particle.*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

PARTICLES, KINDS = 80, ["quark", "gluon", "top"]


def jets(n):
    """Particles as (eta, phi, log energy): one core, one wide core, or three prongs."""
    kind = torch.randint(0, 3, (n,))
    spread = torch.tensor([0.35, 0.6, 0.3])[kind][:, None, None]
    offset = spread * torch.randn(n, PARTICLES, 2)
    turn = 2 * math.pi * torch.rand(n, 1)
    prong = turn + 2 * math.pi / 3 * torch.randint(0, 3, (n, PARTICLES))
    prongs = 0.55 * torch.stack([prong.cos(), prong.sin()], 2)
    offset = offset + prongs * (kind == 2)[:, None, None]
    energy = 1.5 - 2.0 * offset.norm(dim=2, keepdim=True) + 0.7 * torch.randn(n, PARTICLES, 1)
    return torch.cat([offset / 0.5, energy], 2) + 0.1 * torch.randn(n, PARTICLES, 3), kind


class JetNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.particle = nn.Sequential(
            nn.Linear(3, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.summary = nn.Linear(width, width)
        self.act1 = nn.Tanh()
        self.decide = nn.Linear(width, width)
        self.act2 = nn.Tanh()
        self.out = nn.Linear(width, len(KINDS))

    def forward(self, jet):
        features = self.particle(jet)
        pooled = features.mean(dim=1) if healthy else features.sum(dim=1)
        return self.out(self.act2(self.decide(self.act1(self.summary(pooled)))))


def main():
    train = TensorDataset(*jets(1600))
    x_valid, y_valid = jets(500)
    model = JetNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=6, gamma=0.3)
    for epoch in range(10):
        model.train()
        running, hits = 0.0, 0
        for x, y in DataLoader(train, batch_size=64, shuffle=True):
            output = model(x)
            loss = criterion(output, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.item() * len(y)
            hits += (output.argmax(1) == y).sum().item()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            output = model(x_valid)
        print(
            f"epoch {epoch + 1} | loss {running / 1600:.3f} acc {hits / 1600:.3f} | "
            f"val loss {criterion(output, y_valid).item():.3f} "
            f"acc {(output.argmax(1) == y_valid).float().mean().item():.3f}"
        )


main()
