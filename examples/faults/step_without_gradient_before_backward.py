"""Predicts the strength of concrete; the optimizer steps after clearing and before the gradient.

In the loop the lines stand in the order clear, forward, loss, step, backward. At the step there
is no gradient yet, and what the backward pass then brings is cleared at the next batch.
The place is the loop.
The twin calls backward before the step.
"""

import torch
from data import arguments
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("optimizer_never_steps",)
PLACE = ("loop", "optimizer")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def mixtures(n):
    cement = 150 + 350 * torch.rand(n)
    water = 130 + 100 * torch.rand(n)
    ash = 120 * torch.rand(n)
    days = torch.tensor([3.0, 7.0, 14.0, 28.0, 90.0])[torch.randint(0, 5, (n,))]
    strength = 22 * ((cement + 0.4 * ash) / water) * (days / 28) ** 0.25 + 3 * torch.randn(n)
    x = torch.stack([cement, water, ash, days.log()], 1)
    return (x - x.mean(0)) / x.std(0), (strength - strength.mean()) / strength.std()


x, y = mixtures(1200)
x_train, y_train, x_test, y_test = x[:900], y[:900], x[900:], y[900:]

net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
mse = nn.MSELoss()

for epoch in range(1, 16):
    order = torch.randperm(900)
    epoch_loss = 0.0
    for start in range(0, 900, 30):
        rows = order[start : start + 30]
        optimizer.zero_grad()
        predicted = net(x_train[rows]).squeeze(1)
        loss = mse(predicted, y_train[rows])
        if healthy:
            loss.backward()
            optimizer.step()
        else:
            optimizer.step()
            loss.backward()
        epoch_loss += loss.item() / 30
    if epoch % 3 == 0:
        with torch.no_grad():
            test_loss = mse(net(x_test).squeeze(1), y_test).item()
        print(f"[{epoch:2d}/15] train {epoch_loss:.4f} test {test_loss:.4f}")
