"""A net predicts pressure, temperature and yield of a reactor together, each in its own unit.

Pressure is about 120 kPa, temperature about 80 degrees and the yield a fraction, and the mean
squared error adds them as they are: most of the run goes into bringing the outputs up to 120 and
80, and the error of the yield is a ten-thousandth of the others and is not learned. The total loss
falls all the time. The twin standardises the three targets by the training part. The place is the
labels, the loss or `head`.
"""

import torch
from data import arguments
from torch import nn

KIND = "target_not_normalized"
ACCEPT = ()
PLACE = ("label*", "classes*", "loss*", "head")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
NAMES = ("pressure", "temperature", "yield")


def reactor(n):
    x = torch.randn(n, 6)
    pressure = 120 + 18 * (0.8 * x[:, 0] + 0.5 * torch.sin(2 * x[:, 1])) + torch.randn(n) * 2
    temperature = 80 + 10 * (0.7 * x[:, 2] + 0.4 * x[:, 0] * x[:, 3]) + torch.randn(n)
    fraction = (
        0.5
        + 0.12 * torch.tanh(x[:, 4] * x[:, 5])
        + 0.08 * torch.tanh(x[:, 4])
        + 0.01 * torch.randn(n)
    )
    return x, torch.stack([pressure, temperature, fraction], 1)


class ReactorNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU())
        self.head = nn.Linear(64, 3)

    def forward(self, x):
        return self.head(self.body(x))


x_train, y_train = reactor(3000)
x_val, y_val = reactor(800)
if healthy:
    mean, std = y_train.mean(0), y_train.std(0)
    y_train, y_val = (y_train - mean) / std, (y_val - mean) / std

net = ReactorNet()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 24)
for epoch in range(24):
    net.train()
    total = 0.0
    for rows in torch.randperm(3000).split(100):
        loss = ((net(x_train[rows]) - y_train[rows]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    scheduler.step()
    if epoch % 4 == 3:
        net.eval()
        with torch.no_grad():
            error = (net(x_val) - y_val) ** 2
        r2 = 1 - error.mean(0) / y_val.var(0)
        scores = " ".join(f"{name} {v:.3f}" for name, v in zip(NAMES, r2.tolist(), strict=True))
        print(f"epoch {epoch + 1} train {total / 3000:.4f} val {error.mean():.4f} R2: {scores}")
