"""A trained classifier is calibrated by one number, with the weights fixed and the accuracy still.

In the second part only the logarithm of the temperature is fitted, with L-BFGS on a part of the
data that was kept for it: the same few hundred rows at each step. The held-out loss falls, the
order of the scores stays as it was, and with it the accuracy.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "in the second part the network gets no gradient, every step has the same batch and "
    "the accuracy stands still: one temperature is fitted afterwards on a calibration part"
)
_, seed = arguments(__doc__)

GESTURES, LENGTH = 6, 30


def gestures(n, g):
    """Two channels of acceleration: the shape of the gesture, each time done differently."""
    fixed = torch.Generator().manual_seed(17)
    shape = torch.randn(GESTURES, 2, 5, generator=fixed)
    kind = torch.randint(0, GESTURES, (n,), generator=g)
    own = shape[kind] + 0.35 * torch.randn(n, 2, 5, generator=g)
    x = F.interpolate(own, LENGTH, mode="linear", align_corners=True)
    return x + 0.6 * torch.randn(n, 2, LENGTH, generator=g), kind


def classifier():
    return nn.Sequential(
        nn.Conv1d(2, 24, 5, padding=2),
        nn.BatchNorm1d(24),
        nn.ReLU(),
        nn.MaxPool1d(2),
        nn.Conv1d(24, 32, 3, padding=1),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(5),
        nn.Flatten(),
        nn.Dropout(0.3),
        nn.Linear(160, GESTURES),
    )


def report(name, scores, y):
    share = scores.softmax(1).amax(1)
    right = (scores.argmax(1) == y).float()
    print(
        f"{name}: loss {F.cross_entropy(scores, y).item():.4f}  right {right.mean().item():.4f}  "
        f"mean confidence {share.mean().item():.4f}"
    )


def train(model, x, y, x_val, y_val, g):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)
    for epoch in range(8):
        model.train()
        for rows in torch.randperm(len(x), generator=g).split(50):
            loss = F.cross_entropy(model(x[rows]), y[rows], label_smoothing=0.15)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        model.eval()
        with torch.no_grad():
            report(f"epoch {epoch + 1}", model(x_val), y_val)


def calibrate(model, x, y, steps=8):
    model.eval().requires_grad_(False)
    log_temperature = nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.LBFGS([log_temperature], lr=0.5, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x) / log_temperature.exp(), y)
        loss.backward()
        return loss

    for step in range(steps):
        loss = optimizer.step(closure)
        print(
            f"calibration {step + 1}  loss {loss.item():.5f}  "
            f"temperature {log_temperature.exp().item():.3f}"
        )
    return log_temperature.detach().exp()


g = torch.Generator().manual_seed(seed)
(x, y), (x_cal, y_cal), (x_val, y_val) = gestures(2000, g), gestures(500, g), gestures(700, g)
mean, std = x.mean((0, 2), keepdim=True), x.std((0, 2), keepdim=True)
x, x_cal, x_val = ((part - mean) / std for part in (x, x_cal, x_val))
model = classifier()
train(model, x, y, x_val, y_val, g)
temperature = calibrate(model, x_cal, y_cal)
with torch.no_grad():
    report("calibrated", model(x_val) / temperature, y_val)
