"""Names a rotated shape and estimates its angle; the angle's loss enters the sum as a plain number.

The second loss is logged with .item(), and it is that logged value which is added to the first. The
total shown falls and contains both, while the angle's head gets no gradient at all. The place is
the loss; the layers without gradient are those of the angle head.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "detached_loss"
ACCEPT = ("detached_graph", "frozen_parameters", "step_without_gradient")
PLACE = ("loss", "angle_head*", "loop")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

SIDE = 20
NAMES = ("bar", "wedge", "hook")


def render(count):
    """Three kinds of strokes turned by -75 to 75 degrees, blurred and noisy."""
    kind = torch.randint(0, 3, (count,))
    angle = (torch.rand(count) * 2 - 1) * math.radians(75)
    grid = torch.linspace(-1.4, 1.4, SIDE)
    v, u = torch.meshgrid(grid, grid, indexing="ij")
    cos, sin = angle.cos().view(-1, 1, 1), angle.sin().view(-1, 1, 1)
    along, across = u * cos + v * sin, v * cos - u * sin
    bar = torch.exp(-((across / 0.18) ** 2) - (along / 0.9) ** 4)
    wedge = torch.exp(-((across / (0.1 + 0.3 * (along + 1).clamp(0, 2))) ** 2) - (along / 0.9) ** 4)
    foot = torch.exp(-(((along - 0.8) / 0.18) ** 2) - ((across - 0.4) / 0.45) ** 4)
    pictures = torch.stack([bar, wedge, torch.maximum(bar, foot)])[kind, torch.arange(count)]
    pictures = pictures + 0.15 * torch.randn(count, SIDE, SIDE)
    return pictures.unsqueeze(1), kind, angle / math.radians(43)


class ShapeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 12, 5, stride=2, padding=2),
            nn.ELU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.ELU(),
            nn.Flatten(),
        )
        self.kind_head = nn.Linear(24 * 25, len(NAMES))
        self.angle_head = nn.Sequential(nn.Linear(24 * 25, 32), nn.ELU(), nn.Linear(32, 1))

    def forward(self, x):
        features = self.backbone(x)
        return self.kind_head(features), self.angle_head(features).squeeze(1)


class Trainer:
    def __init__(self, model, train, val):
        self.model, self.train_loader, self.val = model, train, val
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        self.classify = nn.CrossEntropyLoss()
        self.regress = nn.MSELoss()

    def losses(self, batch):
        x, kind, angle = batch
        scores, estimate = self.model(x)
        return self.classify(scores, kind), self.regress(estimate, angle)

    def epoch(self):
        self.model.train()
        meter = {"total": 0.0, "kind": 0.0, "angle": 0.0}
        for batch in self.train_loader:
            kind_loss, angle_loss = self.losses(batch)
            logged = {"kind": kind_loss.item(), "angle": angle_loss.item()}
            loss = kind_loss + (angle_loss if healthy else logged["angle"])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for name, value in (logged | {"total": loss.item()}).items():
                meter[name] += value / len(self.train_loader)
        return meter

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        x, kind, angle = self.val
        scores, estimate = self.model(x)
        accuracy = (scores.argmax(1) == kind).float().mean().item()
        return accuracy, 43 * (estimate - angle).abs().mean().item()

    def fit(self, epochs):
        for number in range(1, epochs + 1):
            meter = self.epoch()
            accuracy, degrees = self.validate()
            shown = ", ".join(f"{name} {value:.3f}" for name, value in meter.items())
            print(f"{number:2d}: {shown} | val accuracy {accuracy:.3f}, off by {degrees:.1f} deg")


def main():
    x, kind, angle = render(2400)
    x = (x - x[:2000].mean()) / x[:2000].std()
    loader = DataLoader(
        TensorDataset(x[:2000], kind[:2000], angle[:2000]), batch_size=50, shuffle=True
    )
    Trainer(ShapeNet(), loader, (x[2000:], kind[2000:], angle[2000:])).fit(10)


main()
