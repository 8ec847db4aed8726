"""A network that names yoga poses from body key points hands its raw scores to nn.NLLLoss, which
expects log-probabilities.

log_softmax was dropped when the head was rewritten. The loss is then minus the raw score of the
right class and runs to minus hundreds, since nothing holds the scores together.
The place is the loss (or the end of the model).
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss", "head", "head.*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

POSES = ("tree", "warrior", "cobra", "plank", "triangle")
# Angles of both arms, both legs and the trunk, in degrees.
ANGLES = torch.tensor(
    [
        [80.0, 100.0, -90.0, -140.0, 90.0],
        [10.0, 170.0, -60.0, -130.0, 90.0],
        [-60.0, -75.0, 180.0, 175.0, 40.0],
        [-90.0, -85.0, 190.0, 185.0, 10.0],
        [85.0, -90.0, -60.0, -115.0, 20.0],
    ]
)


def key_points(n):
    """Ends of five limbs of random length, seen by a shaking camera at random scale."""
    pose = torch.randint(0, len(POSES), (n,))
    angle = (ANGLES[pose] + 22 * torch.randn(n, 5)) * math.pi / 180
    reach = 1 + 0.15 * torch.randn(n, 5)
    points = torch.stack([reach * angle.cos(), reach * angle.sin()], -1)
    points = points * (0.8 + 0.4 * torch.rand(n, 1, 1)) + 0.2 * torch.randn(n, 1, 2)
    points = points + 0.08 * torch.randn(n, 5, 2)
    return points.flatten(1), pose


class PoseNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(10, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1)
        )
        self.head = nn.Linear(width, len(POSES))

    def forward(self, x):
        scores = self.head(self.body(x))
        return F.log_softmax(scores, dim=1) if healthy else scores


x, y = key_points(1800)
mean, std = x[:1400].mean(0), x[:1400].std(0)
x = (x - mean) / std
loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=40, shuffle=True)
x_val, y_val = x[1400:], y[1400:]

model = PoseNet()
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
for epoch in range(10):
    model.train()
    running_loss, running_right = 0.0, 0
    for inputs, labels in loader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item() * len(labels)
        running_right += (outputs.argmax(1) == labels).sum().item()
    model.eval()
    with torch.no_grad():
        outputs = model(x_val)
        val_loss = criterion(outputs, y_val).item()
        val_right = (outputs.argmax(1) == y_val).float().mean().item()
    print(
        f"epoch {epoch}: loss {running_loss / 1400:.3f} acc {running_right / 1400:.3f} "
        f"val loss {val_loss:.3f} val acc {val_right:.3f}"
    )
