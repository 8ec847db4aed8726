"""Shapes of galaxies from volunteers' votes; the label is the vote of a single volunteer, wrong in
a third of the cases.

The table has fifteen votes per galaxy, and each volunteer alone is often wrong. The user takes
the first column instead of the majority. The network memorises wrong labels in the later epochs,
while the accuracy on galaxies labelled by experts falls. The place is the data (labels).
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "label_noise"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*", "loss")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)

CLASSES = ["elliptical", "spiral", "edge-on", "ring", "merger"]
PIX = 18


@dataclass
class Galaxies:
    images: torch.Tensor
    expert: torch.Tensor
    votes: torch.Tensor  # one column per volunteer

    @property
    def labels(self):
        return self.votes.mode(1).values if healthy else self.votes[:, 0]


def observe(n):
    kind = torch.randint(0, 5, (n,))
    lin = torch.linspace(-1.2, 1.2, PIX)
    yy, xx = torch.meshgrid(lin, lin, indexing="ij")
    phi = 3.1416 * torch.rand(n, 1, 1)
    x = xx * phi.cos() + yy * phi.sin()
    y = -xx * phi.sin() + yy * phi.cos()
    size = 0.35 + 0.15 * torch.rand(n, 1, 1)
    q = 0.6 + 0.4 * torch.rand(n, 1, 1)
    r = (x**2 + (y / q) ** 2).sqrt() / size
    theta = torch.atan2(y / q, x)
    sersic = torch.exp(-2.2 * r.clamp(min=0.05).sqrt() + 1)
    arms = torch.exp(-r) * (
        1.2 + 1.6 * torch.cos(2 * theta - 4 * r * torch.sign(torch.randn(n, 1, 1)))
    )
    edge = 1.8 * torch.exp(-x.abs() / size) * torch.exp(-((y / 0.12) ** 2))
    ring = 1.3 * torch.exp(-(((r - 1.4) / 0.3) ** 2)) + 0.5 * torch.exp(-2 * r)
    r2 = ((x - 0.55) ** 2 + y**2).sqrt() / size
    merger = sersic * 0.8 + 0.7 * torch.exp(-2.2 * r2.clamp(min=0.05).sqrt() + 1)
    img = torch.stack([sersic, arms, edge, ring, merger], 1)[torch.arange(n), kind]
    img = img * (0.7 + 0.6 * torch.rand(n, 1, 1)) + 0.4 * torch.randn(n, PIX, PIX)
    wrong = torch.rand(n, 15) < 0.38
    votes = torch.where(wrong, torch.randint(0, 5, (n, 15)), kind[:, None])
    return Galaxies(((img - 0.35) / 0.5).unsqueeze(1), kind, votes)


class ConvNet(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.c1 = nn.Conv2d(1, width, 3, padding=1)
        self.b1 = nn.BatchNorm2d(width)
        self.c2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.b2 = nn.BatchNorm2d(2 * width)
        self.fc1 = nn.Linear(2 * width * 16, 128)
        self.fc2 = nn.Linear(128, len(CLASSES))

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.b1(self.c1(x))), 2)
        x = F.adaptive_max_pool2d(F.relu(self.b2(self.c2(x))), 4)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def run(epochs=16, batch=50):
    train, test = observe(1200), observe(500)
    net = ConvNet()
    opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=5e-4, nesterov=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, epochs)
    labels = train.labels
    for epoch in range(1, epochs + 1):
        net.train()
        right = total = 0.0
        for rows in torch.randperm(len(labels)).split(batch):
            x = train.images[rows]
            if torch.rand(()) < 0.5:
                x = x.flip(-1)
            out = net(x)
            loss = F.cross_entropy(out, labels[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(rows) / len(labels)
            right += (out.argmax(1) == labels[rows]).float().sum().item() / len(labels)
        sched.step()
        net.eval()
        with torch.no_grad():
            out = net(test.images)
        acc = (out.argmax(1) == test.expert).float().mean().item()
        if epoch % 3 == 1:
            print(
                f"epoch {epoch}: loss {total:.3f} acc {right:.3f} | experts: loss {F.cross_entropy(out, test.expert).item():.3f} acc {acc:.3f}"  # noqa: E501
            )


run()
