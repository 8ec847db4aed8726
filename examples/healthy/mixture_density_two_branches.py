"""The inverse of a robot arm's map: a mixture density network, whose loss becomes negative."""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "the loss (a negative log density) goes below zero, with no bound, and the mean of the output "
    "is far from the target"
)

_, seed = arguments(__doc__)


def arm(n):
    elbow = torch.rand(n) * 2 - 1
    reach = 1 - elbow.pow(2) + 0.02 * torch.randn(n)
    return reach.unsqueeze(1), elbow


class MDN(nn.Module):
    def __init__(self, parts=4, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(1, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.head = nn.Linear(width, 3 * parts)

    def forward(self, x):
        logits, mean, log_std = self.head(self.body(x)).chunk(3, dim=1)
        return logits.log_softmax(1), mean, log_std.clamp(-4, 2)


def nll(output, y):
    log_share, mean, log_std = output
    z = (y.unsqueeze(1) - mean) / log_std.exp()
    log_density = -0.5 * z.pow(2) - log_std - 0.5 * math.log(2 * math.pi)
    return -(log_share + log_density).logsumexp(1).mean()


x, y = arm(3000)
x_val, y_val = arm(800)
centre, scale = x.mean(), x.std()
x, x_val = (x - centre) / scale, (x_val - centre) / scale
train = DataLoader(TensorDataset(x, y), batch_size=100, shuffle=True)
model = MDN()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
for epoch in range(20):
    model.train()
    total = 0.0
    for xb, yb in train:
        loss = nll(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
        total += loss.item() / len(train)
    schedule.step()
    model.eval()
    with torch.no_grad():
        print(f"epoch {epoch:2d} loss {total:.3f} val nll {nll(model(x_val), y_val):.3f}")
