"""A mobile-style net for leaf pictures, where the decay 0.9 of RMSprop became weight_decay 0.9.

The person ported a recipe from another framework, in which RMSProp takes decay=0.9, the smoothing
of the squared gradients. Here that is called alpha; the only argument with "decay" in its name is
weight_decay, and so it was given. The weights are pulled to zero. The place is the optimizer.
"""

import torch
from data import arguments
from torch import nn

KIND = "over_regularized"
ACCEPT = ("bad_optimizer_settings",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

RECIPE = {"optimizer": "rmsprop", "lr": 1.5e-3, "decay": 0.9, "momentum": 0.9, "epsilon": 1e-3}
CLASSES, SIDE = 6, 16


def leaves(n, generator):
    """Leaf outlines by a radius that depends on the angle: lobes, width and teeth by species."""
    grid = torch.linspace(-1.3, 1.3, SIDE)
    y, x = torch.meshgrid(grid, grid, indexing="ij")
    species = torch.randint(0, CLASSES, (n,), generator=generator)
    lobes = torch.tensor([2.0, 3, 4, 5, 3, 5])[species].view(-1, 1, 1)
    depth = torch.tensor([0.35, 0.3, 0.3, 0.3, 0.08, 0.1])[species].view(-1, 1, 1)
    r = torch.rand(n, 3, 1, 1, generator=generator)
    angle = torch.atan2(y, x) + 6.28 * r[:, 0]
    radius = (0.75 + 0.25 * r[:, 1]) * (1 + depth * torch.cos(lobes * angle))
    shape = torch.sigmoid(8 * (radius - (x**2 + y**2).sqrt()))
    pictures = (0.5 + r[:, 2]) * shape + 0.15 * torch.randn(n, SIDE, SIDE, generator=generator)
    return pictures.unsqueeze(1), species


class InvertedResidual(nn.Module):
    def __init__(self, channels, expansion=3):
        super().__init__()
        wide = channels * expansion
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(),
            nn.Conv2d(wide, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
        )

    def forward(self, x):
        return x + self.layers(x)


def leaf_net(width=16):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU6(),
        InvertedResidual(width),
        nn.Conv2d(width, 2 * width, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU6(),
        InvertedResidual(2 * width),
        nn.Flatten(),
        nn.Linear(2 * width * (SIDE // 4) ** 2, CLASSES),
    )


def build_optimizer(recipe, parameters):
    smoothing = {"alpha": recipe["decay"]} if healthy else {"weight_decay": recipe["decay"]}
    return torch.optim.RMSprop(
        parameters,
        lr=recipe["lr"],
        momentum=recipe["momentum"],
        eps=recipe["epsilon"],
        **smoothing,
    )


def accuracy(model, pictures, species):
    model.eval()
    with torch.no_grad():
        scores = model(pictures)
    loss = nn.functional.cross_entropy(scores, species)
    return loss.item(), (scores.argmax(1) == species).float().mean().item()


def main():
    generator = torch.Generator().manual_seed(80 + seed)
    x, y = leaves(1400, generator)
    x_val, y_val = leaves(500, generator)
    mean, std = x.mean(), x.std()
    x, x_val = (x - mean) / std, (x_val - mean) / std
    model = leaf_net()
    optimizer = build_optimizer(RECIPE, model.parameters())
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.85)
    for epoch in range(1, 13):
        model.train()
        total = 0.0
        for rows in torch.randperm(len(x)).split(40):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        val_loss, val_accuracy = accuracy(model, x_val, y_val)
        print(
            f"epoch {epoch:2d}  loss {total / len(x):.4f}  val loss {val_loss:.4f}  "
            f"val accuracy {val_accuracy:.4f}"
        )


if __name__ == "__main__":
    main()
