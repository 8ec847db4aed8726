"""A warm-up the wrong way round: three hundred times the rate at the first step, and falling from there.

The rate is right from step 300 on, but the ReLU units of a layer died before: the place.
"""

import torch
from data import arguments
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

KIND = "dead_relu"
ACCEPT = ("learning_rate_too_high",)
PLACE = ("net.*", "optimizer", "")
SILENT = False
EXACT = False
EARLY = True


class Regressor(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_in, 32),
            nn.ReLU(),
            nn.Linear(32, 32),
            nn.ReLU(),
            nn.Linear(32, 32),
            nn.ReLU(),
            nn.Linear(32, 1),
        )

    def forward(self, x):
        return self.net(x)


healthy, seed = arguments(__doc__)
bunch = load_diabetes()
x = torch.tensor(StandardScaler().fit_transform(bunch.data), dtype=torch.float32)
y = torch.tensor(bunch.target, dtype=torch.float32).unsqueeze(1)
y = (y - y.mean()) / y.std()
model = Regressor(10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
if healthy:
    scheduler = LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 60))
else:
    scheduler = LambdaLR(optimizer, lambda s: max(1.0, 300 / (s + 1)))
for step in range(400):
    rows = torch.randperm(len(x))[:64]
    loss = nn.functional.mse_loss(model(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
print(f"loss {loss.item():.3f}")
