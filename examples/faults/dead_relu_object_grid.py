"""Finds small objects on a grid; the rare-object bias of -4.6 was given to the hidden layers too.

The prior of dense detectors is a bias of -log(99) for the score layer, so that the loss starts low;
here every convolution gets it. The second and third ReLU of the tower never let anything pass, and
all cells get one and the same score. The place is the layers of the tower.
"""

import math

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.metrics import average_precision_score
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init", "vanishing_gradient")
PLACE = ("tower*",)
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

CELLS, CELL = 6, 4
SIDE = CELLS * CELL
SHAPES = torch.tensor(
    [
        [[0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]],
        [[1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]],
    ]
).float()


def scenes(count):
    """Scenes with rings (wanted) and crosses (not wanted) in about a fifth of the cells."""
    draw = torch.rand(count, CELLS, CELLS)
    wanted = draw < 0.08
    other = (draw >= 0.08) & (draw < 0.2)
    board = wanted[..., None, None] * SHAPES[0] + other[..., None, None] * SHAPES[1]
    board = board.permute(0, 1, 3, 2, 4).reshape(count, 1, SIDE, SIDE)
    board = board * (0.8 + 0.6 * torch.rand(count, 1, 1, 1))
    return board + 0.6 * torch.randn_like(board), wanted.float()


class GridDetector(nn.Module):
    def __init__(self, width=24, prior=0.01):
        super().__init__()
        self.tower = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, CELL, stride=CELL),
            nn.ReLU(),
        )
        self.score = nn.Conv2d(width, 1, 1)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
                nn.init.zeros_(module.bias)
        nn.init.normal_(self.score.weight, std=0.01)
        priors = [self.score] if healthy else [m for m in self.modules() if hasattr(m, "bias")]
        for module in priors:
            nn.init.constant_(module.bias, -math.log((1 - prior) / prior))

    def forward(self, x):
        return self.score(self.tower(x)).squeeze(1)


def focal_loss(logits, targets, alpha=0.25, gamma=2.0):
    plain = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    right = torch.exp(-plain)
    weight = alpha * targets + (1 - alpha) * (1 - targets)
    return (weight * (1 - right) ** gamma * plain).sum() / targets.sum().clamp(min=1)


def average_precision(model, x, y):
    model.eval()
    with torch.no_grad():
        scores = model(x)
    return average_precision_score(y.flatten().numpy(), scores.flatten().numpy())


def main():
    x, y = scenes(700)
    x = (x - x[:600].mean()) / x[:600].std()
    x_train, y_train, x_val, y_val = x[:600], y[:600], x[600:], y[600:]
    detector = GridDetector()
    optimizer = torch.optim.AdamW(detector.parameters(), lr=2e-3, weight_decay=1e-4)
    step = 0
    for epoch in range(12):
        detector.train()
        for rows in torch.randperm(len(x_train)).split(24):
            loss = focal_loss(detector(x_train[rows]), y_train[rows])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 25 == 0:
                print(f"step {step:4d}  focal loss {loss.item():.4f}")
            step += 1
        print(f"epoch {epoch}  held-out AP {average_precision(detector, x_val, y_val):.3f}")


main()
