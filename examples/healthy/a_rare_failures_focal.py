"""Predicts which compressors fail in the next week; two in a hundred do. The loss is focal and the
result is judged by average precision.
"""

import torch
import torch.nn.functional as F
from data import arguments, standardise
from sklearn.metrics import average_precision_score
from torch import nn

ODD = "heavy class imbalance, dealt with by a focal loss, a sampler and a fitting measure"

_, seed = arguments(__doc__)


def compressors(n):
    z = torch.randn(n, 7)
    wear = 0.9 * z[:, 0] + 0.7 * z[:, 1].relu() + 0.8 * z[:, 2] * (z[:, 3] > 0.5) + 0.25 * z[:, 4]
    fails = (wear + 0.3 * torch.randn(n) > 2.5).float()
    raw = torch.stack(
        [
            65 + 8 * z[:, 0],
            torch.exp(0.5 * z[:, 1]),
            7 + 0.4 * z[:, 2],
            60 + 20 * z[:, 3],
            0.1 * z[:, 4],
            400 + 5 * z[:, 5],
            3 + z[:, 6],
        ],
        1,
    )
    return raw, fails


def focal(logit, target, gamma=1.5):
    p = torch.sigmoid(logit)
    missed = torch.where(target == 1, 1 - p, p)
    return (
        missed**gamma * F.binary_cross_entropy_with_logits(logit, target, reduction="none")
    ).mean()


x, y = compressors(6000)
x_val, y_val = compressors(4000)
x, x_val = standardise(x, x_val)
print(f"failures: {y.mean():.3%} of training, {y_val.mean():.3%} of validation")

draw = torch.where(y == 1, 8.0, 1.0)
model = nn.Sequential(
    nn.Linear(7, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU(), nn.Linear(24, 1), nn.Flatten(0)
)
nn.init.constant_(model[4].bias, -1.5)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
for step in range(1, 801):
    rows = torch.multinomial(draw, 128, replacement=True)
    loss = focal(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 160 == 0:
        with torch.no_grad():
            logit = model(x_val)
        precision = average_precision_score(y_val.numpy(), logit.numpy())
        top = y_val[logit.topk(50).indices].mean()
        print(
            f"step {step}: loss {loss.item():.4f} average precision {precision:.3f} "
            f"failures in the top 50 {top:.0%}"
        )
