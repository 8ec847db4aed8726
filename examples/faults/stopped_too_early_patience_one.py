"""A GRU that continues noisy waves, ended by early stopping that gives up at once.

The stop wants an improvement of 0.05 over the best loss with a patience of one. The very first
epochs improve slowly, and the training is over before it began. The place is the loop's stop. The
twin has a patience of eight and asks for any improvement.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
PATIENCE, MIN_DELTA = (8, 0.0) if healthy else (1, 0.05)
x, _ = waves(seed)
loader = DataLoader(TensorDataset(x[:600]), batch_size=40, shuffle=True)
x_val = x[600:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        return self.out(self.rnn(x)[0])


class EarlyStopping:
    def __init__(self, patience, min_delta):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad = float("inf"), 0

    def __call__(self, loss):
        if loss < self.best - self.min_delta:
            self.best, self.bad = loss, 0
        else:
            self.bad += 1
        return self.bad >= self.patience


model, stop = Forecaster(), EarlyStopping(PATIENCE, MIN_DELTA)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40, eta_min=2e-5)
mse = nn.MSELoss()
for epoch in range(40):
    model.train()
    total = 0.0
    for (xb,) in loader:
        optimizer.zero_grad()
        loss = mse(model(xb[:, :-1]), xb[:, 1:])
        loss.backward()
        optimizer.step()
        total += loss.item()
    schedule.step()
    model.eval()
    with torch.no_grad():
        val = mse(model(x_val[:, :-1]), x_val[:, 1:]).item()
    print(f"epoch {epoch + 1}: train {total / len(loader):.4f}  val {val:.4f}")
    if stop(val):
        print("early stopping")
        break
