"""A PointNet tells scanned solids apart; training clouds are centred and scaled to the unit ball,
validation clouds are given as scanned.

Scans lie anywhere and come in any size, so that what the network is shown in validation is far from
all it has learnt from: training is nearly perfect, validation near chance. The place is the input
of the validation, which lacks the `normalise` of the training's batches.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("input", "loader", "loop")
SILENT = False
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

POINTS, SOLIDS = 48, ("ball", "box", "cone", "cylinder")


def scan(count):
    kind = torch.randint(0, len(SOLIDS), (count,))
    turn, height = torch.rand(count, POINTS) * 6.283, torch.rand(count, POINTS) * 2 - 1
    ring = torch.stack([turn.cos(), turn.sin()], 2)
    ball = torch.cat([ring * (1 - height**2).sqrt().unsqueeze(2), height.unsqueeze(2)], 2)
    box = torch.rand(count, POINTS, 3) * 2 - 1
    box = box / box.abs().amax(2, keepdim=True)
    cone = torch.cat([ring * ((1 - height) / 2).unsqueeze(2), height.unsqueeze(2)], 2)
    cylinder = torch.cat([ring, height.unsqueeze(2)], 2)
    cloud = torch.stack([ball, box, cone, cylinder])[kind, torch.arange(count)]
    cloud = cloud + 0.06 * torch.randn_like(cloud)
    size = 20 + 60 * torch.rand(count, 1, 1)
    return {"points": cloud * size + 150 * torch.randn(count, 1, 3), "kind": kind}


def normalise(points):
    points = points - points.mean(1, keepdim=True)
    return points / points.norm(dim=2).amax(1).view(-1, 1, 1)


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 64), nn.ReLU())
        self.cloud = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, len(SOLIDS)))

    def forward(self, points):
        each = self.point(points)
        return self.cloud(torch.cat([each.amax(1), each.mean(1)], 1))


def main():
    scans = scan(1100)
    train = {name: part[:800] for name, part in scans.items()}
    val = {name: part[800:] for name, part in scans.items()}
    model = PointNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(14):
        model.train()
        right = 0
        for rows in torch.randperm(800).split(40):
            points, kind = normalise(train["points"][rows]), train["kind"][rows]
            score = model(points)
            loss = F.cross_entropy(score, kind)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (score.argmax(1) == kind).sum().item()
        model.eval()
        with torch.no_grad():
            score = model(normalise(val["points"]) if healthy else val["points"])
            val_loss = F.cross_entropy(score, val["kind"])
        val_right = (score.argmax(1) == val["kind"]).float().mean()
        print(f"epoch {epoch:2d} loss {loss.item():.3f} accuracy {right / 800:.3f} "
              f"validation {val_loss:.3f} accuracy {val_right:.3f}")  # fmt: skip


main()
