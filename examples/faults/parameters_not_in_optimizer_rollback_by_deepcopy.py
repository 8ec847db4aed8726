"""Water level of a river from rain, by a GRU. When the validation loss spikes or has not got better
for two evaluations, the trainer goes back to the best model so far.

It goes back by `self.model = copy.deepcopy(self.best)`; the optimizer keeps the parameters of the
model that was thrown away. From then on it steps on those, and nothing trains the one in use.
The place is the optimizer. The twin loads the best state into the model it has.
"""

import copy

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ("gradients_not_cleared",)
PLACE = ("optimizer", "loop", "", "gru*", "level*")
SILENT = False
EXACT = True
EARLY = False


class River(nn.Module):
    def __init__(self, gauges, hidden=24):
        super().__init__()
        self.gru = nn.GRU(gauges, hidden, batch_first=True)
        self.level = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, rain):
        return self.level(self.gru(rain)[0][:, -1]).squeeze(1)


def rivers(n, g, gauges=4, days=20):
    rain = (torch.rand(n, days, gauges, generator=g) < 0.3).float()
    rain = rain * -torch.rand(n, days, gauges, generator=g).clamp_min(1e-3).log()
    store, level = torch.zeros(n), torch.zeros(n)
    reach = torch.tensor([1.0, 0.6, 0.9, 0.3])
    for day in range(days):
        wet = torch.sigmoid(2 * (store - 2))
        fall = rain[:, day] @ reach
        level = 0.7 * level + fall * wet + 0.1 * store
        store = 0.85 * store + fall * (1 - wet)
    level = (level - level.mean()) / level.std()
    return rain, level + 0.05 * torch.randn(n, generator=g)


class Trainer:
    def __init__(self, model, healthy, patience=2):
        self.model, self.healthy, self.patience = model, healthy, patience
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        self.best, self.best_loss, self.waited = copy.deepcopy(model), float("inf"), 0

    def roll_back(self):
        if self.healthy:
            self.model.load_state_dict(self.best.state_dict())
        else:
            self.model = copy.deepcopy(self.best)
        for group in self.optimizer.param_groups:
            group["lr"] *= 0.8
        self.waited = 0

    def check(self, x, y):
        with torch.no_grad():
            loss = F.mse_loss(self.model(x), y).item()
        spike = loss > 1.1 * self.best_loss
        if loss < self.best_loss:
            self.best, self.best_loss, self.waited = copy.deepcopy(self.model), loss, 0
        else:
            self.waited += 1
        if spike or self.waited >= self.patience:
            self.roll_back()
        return loss

    def fit(self, x, y, x_val, y_val, steps=500, size=50, every=10):
        for step in range(1, steps + 1):
            rows = torch.randint(len(x), (size,))
            loss = F.mse_loss(self.model(x[rows]), y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if step % every == 0:
                val = self.check(x_val, y_val)
            if step % 50 == 0:
                print(f"step {step} loss {loss.item():.4f} val {val:.4f} best {self.best_loss:.4f}")


if __name__ == "__main__":
    healthy, seed = arguments(__doc__)
    g = torch.Generator().manual_seed(seed)
    train, val = rivers(2000, g), rivers(300, g)
    Trainer(River(4), healthy).fit(*train, *val)
