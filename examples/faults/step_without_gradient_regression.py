"""House prices by an MLP whose loop clears the gradients between backward and step.

Adam sees gradients of None at every step and leaves all the weights as they were. The place is the
loop.
"""

import torch
from data import arguments, batches, houses
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ()
PLACE = ("loop",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = houses(seed, n=1200)


class Regressor(nn.Module):
    def __init__(self, inputs, hidden=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x)[:, 0]


class Fit:
    def __init__(self, model):
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=0.01)
        self.loss = nn.L1Loss()

    def step(self, x, y):
        if healthy:
            self.opt.zero_grad()
        loss = self.loss(self.model(x), y)
        loss.backward()
        if not healthy:
            self.opt.zero_grad()
        self.opt.step()
        return loss.item()


fit = Fit(Regressor(x.shape[1]))
for rows, target in batches(x, y, size=45, steps=160, seed=seed):
    last = fit.step(rows, target)
with torch.no_grad():
    val = fit.loss(fit.model(x_val), y_val).item()
print(f"mean absolute error: train {last:.3f}, validation {val:.3f}")
