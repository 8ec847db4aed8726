"""The shaking in an earthquake is predicted, and the distance has become 1 in every row.

The distance was to be scaled by the norm of its column, but normalize works along dimension 1,
which has one element per row here: each distance is divided by itself. The network never learns
how far the station is. The place is the input: its column 1.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.model_selection import KFold
from torch import nn

KIND = "constant_feature"
ACCEPT = ()
PLACE = ("input",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


def records(n, g):
    """Magnitude, distance in km, depth in km, speed of waves in the soil; log of the shaking."""
    magnitude = 4 + 3 * torch.rand(n, generator=g)
    distance = torch.exp(1.5 + 3.2 * torch.rand(n, generator=g))
    depth = 2 + 20 * torch.rand(n, generator=g)
    soil = torch.exp(5 + 1.7 * torch.rand(n, generator=g))
    slant = (distance**2 + depth**2).sqrt()
    shaking = 1.1 * magnitude - 1.4 * slant.log() - 0.006 * slant - 0.5 * (soil / 760).log()
    columns = {"magnitude": magnitude, "distance": distance, "depth": depth, "soil": soil}
    return columns, shaking + 0.3 * torch.randn(n, generator=g)


def standard(values):
    return (values - values.mean()) / values.std()


def inputs(columns):
    distance = columns["distance"].unsqueeze(1)
    scaled = F.normalize(distance, dim=0) if healthy else F.normalize(distance)
    return torch.cat(
        [
            standard(columns["magnitude"]).unsqueeze(1),
            scaled * len(distance) ** 0.5 if healthy else scaled,
            standard(columns["depth"]).unsqueeze(1),
            standard(columns["soil"].log()).unsqueeze(1),
        ],
        1,
    )


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, x):
        return x + self.inner(x)


def fold_net(width=32):
    return nn.Sequential(
        nn.Linear(4, width),
        Residual(width),
        nn.SiLU(),
        Residual(width),
        nn.SiLU(),
        nn.Linear(width, 1),
    )


def train_fold(x, y, train, val, g):
    model = fold_net()
    optimizer = torch.optim.NAdam(model.parameters(), lr=2e-3)
    mean, std = y[train].mean(), y[train].std()
    for _ in range(15):
        for rows in train[torch.randperm(len(train), generator=g)].split(40):
            loss = F.mse_loss(model(x[rows]).squeeze(1), (y[rows] - mean) / std)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    with torch.no_grad():
        guess = model(x[val]).squeeze(1) * std + mean
    return loss.item(), (guess - y[val]).square().mean().sqrt().item()


def main():
    g = torch.Generator().manual_seed(seed)
    columns, y = records(1200, g)
    x = inputs(columns)
    errors = []
    for number, (train, val) in enumerate(KFold(3, shuffle=True, random_state=seed).split(x)):
        last, error = train_fold(x, y, torch.tensor(train), torch.tensor(val), g)
        errors.append(error)
        print(f"fold {number + 1}  last loss {last:.4f}  error {error:.3f} (natural log)")
    print(f"mean error {sum(errors) / len(errors):.3f}, scatter of all {y.std().item():.3f}")


main()
