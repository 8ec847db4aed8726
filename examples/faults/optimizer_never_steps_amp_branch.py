"""Segments fields of crop in small satellite tiles; without a GPU the optimizer is never asked.

The script was written for a GPU with mixed precision, where the scaler takes the step. On the
laptop the other branch of the `if` runs, and in it somebody wrote the backward pass and no step.
Nothing fails: the loss is merely the same evening after evening.
The place is the loop, in the branch without the scaler.
The twin takes the optimizer's step in that branch.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "optimizer_never_steps"
ACCEPT = ()
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)

config = {"epochs": 6, "batch": 16, "lr": 3e-3, "amp": torch.cuda.is_available()}


def make_tiles(n):
    """Two bands of 24 x 24; a field is a bright rectangle in the near infrared."""
    mask = torch.zeros(n, 1, 24, 24)
    for i in range(n):
        top, left = torch.randint(0, 12, (2,)).tolist()
        height, width = torch.randint(6, 13, (2,)).tolist()
        mask[i, 0, top : top + height, left : left + width] = 1
    red = 0.5 - 0.4 * mask + 0.5 * torch.randn(n, 1, 24, 24)
    infrared = -0.5 + 1.0 * mask + 0.5 * torch.randn(n, 1, 24, 24)
    return torch.cat([red, infrared], 1), mask


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.ReLU())
        self.middle = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.out = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.up(self.middle(a))
        return self.out(torch.cat([a, b], 1))


def train_one_epoch(model, optimizer, scaler, x, y):
    model.train()
    losses = []
    for rows in torch.randperm(len(x)).split(config["batch"]):
        optimizer.zero_grad()
        if config["amp"]:
            with torch.autocast("cuda"):
                loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            loss = F.binary_cross_entropy_with_logits(model(x[rows]), y[rows])
            loss.backward()
            if healthy:
                optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def iou(model, x, y):
    model.eval()
    found = model(x) > 0
    truth = y > 0.5
    return ((found & truth).sum() / (found | truth).sum()).item()


x, y = make_tiles(480)
x_val, y_val = make_tiles(120)
model = SmallUNet()
optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
scaler = torch.amp.GradScaler("cuda", enabled=config["amp"])
for epoch in range(1, config["epochs"] + 1):
    loss = train_one_epoch(model, optimizer, scaler, x, y)
    print(f"epoch {epoch}  loss {loss:.4f}  IoU {iou(model, x_val, y_val):.3f}")
