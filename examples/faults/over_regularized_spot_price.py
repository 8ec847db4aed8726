"""An MLP regresses hourly electricity spot prices; the weight decay is so strong that the weights
vanish.

The weight decay of SGD is 0.6 where 1e-4 was meant: the pull to zero outweighs the gradient of
the data and the model ends near the mean price. The place is the optimizer.
"""

import math

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

r = np.random.default_rng(620 + seed)
HOURS = 4000
hour = r.integers(0, 24, HOURS)
wind = r.weibull(2.0, HOURS) * 9
sun = np.clip(np.sin((hour - 6) * math.pi / 12), 0, None) * r.uniform(0.2, 1, HOURS)
demand = 50 + 10 * np.sin((hour - 8) * math.pi / 12) + r.normal(0, 5, HOURS)
gas = r.gamma(9.0, 3.0, HOURS)
residual = demand - 1.2 * np.minimum(wind, 14) - 18 * sun
price = (
    0.5 * residual
    + 0.02 * gas * np.clip(residual - 20, 0, None)
    + 0.8 * gas
    + r.normal(0, 4, HOURS)
)

features = np.stack([np.sin(hour / 3.82), np.cos(hour / 3.82), wind, sun, demand, gas], 1)
cut = 3200
features = (features - features[:cut].mean(0)) / features[:cut].std(0)
price = (price - price[:cut].mean()) / price[:cut].std()
X = torch.tensor(features, dtype=torch.float32)
Y = torch.tensor(price, dtype=torch.float32).unsqueeze(1)


class PriceNet(nn.Module):
    def __init__(self, inputs, width=64):
        super().__init__()
        self.inp = nn.Linear(inputs, width)
        self.mid = nn.Linear(width, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        x = torch.relu(self.inp(x))
        x = torch.relu(self.mid(x))
        return self.out(x)


class Trainer:
    def __init__(self, model, weight_decay, epochs=16, batch=40):
        self.model, self.epochs, self.batch = model, epochs, batch
        self.optimizer = torch.optim.SGD(
            model.parameters(), lr=0.02, momentum=0.9, weight_decay=weight_decay
        )
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, epochs)
        self.loss = nn.MSELoss()

    def epoch(self):
        self.model.train()
        losses = []
        for rows in torch.randperm(cut).split(self.batch):
            loss = self.loss(self.model(X[rows]), Y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        self.scheduler.step()
        return np.mean(losses)

    @torch.no_grad()
    def r2(self):
        self.model.eval()
        return 1 - self.loss(self.model(X[cut:]), Y[cut:]).item() / Y[cut:].var().item()

    def fit(self):
        for e in range(self.epochs):
            print(f"epoch {e:2d} train mse {self.epoch():.4f} val R2 {self.r2():.4f}")


Trainer(PriceNet(X.shape[1]), weight_decay=1e-4 if healthy else 0.6).fit()
