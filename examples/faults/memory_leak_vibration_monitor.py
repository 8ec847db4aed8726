"""Forecast of a machine's vibration by a GRU; the monitor's losses are kept with their graphs.

After each step the loss on a held-out stretch is put into a list for a curve. It is the tensor
itself, and nobody calls backward on it: all that the forward pass had saved stays in memory, for
every step. The place is the loop (the list "history").
The twin puts the number into the list.
"""

import resource

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

# %% the sensor
rng = np.random.default_rng(1600 + seed)
t = np.arange(6000)
signal = np.sin(0.21 * t) + 0.6 * np.sin(0.47 * t + 1.0) * (1 + 0.3 * np.sin(0.01 * t))
signal = signal + 0.15 * rng.normal(size=t.size)
signal = torch.tensor((signal - signal.mean()) / signal.std(), dtype=torch.float32)

# %% windows of 24 values and the one that follows
windows = signal.unfold(0, 25, 1)
x, y = windows[:, :24, None], windows[:, 24]
x_train, y_train = x[:4500], y[:4500]
x_held, y_held = x[4600:5100:8], y[4600:5100:8]
x_test, y_test = x[5200:], y[5200:]


# %% model
class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(1, 32, batch_first=True)
        self.linear = nn.Linear(32, 1)

    def forward(self, window):
        return self.linear(self.gru(window)[0][:, -1]).squeeze(1)


model = Forecaster()
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

# %% training
history = []
for step in range(1, 241):
    rows = torch.randint(0, len(x_train), (64,))
    optimizer.zero_grad()
    loss = criterion(model(x_train[rows]), y_train[rows])
    loss.backward()
    optimizer.step()
    held = criterion(model(x_held), y_held)
    history.append(held.item() if healthy else held)
    if step % 60 == 0:
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) / 1024
        print(f"step {step}: loss {loss.item():.4f}, held out {held.item():.4f}")
        print(f"    memory +{grown:.0f} MB")

# %% result
with torch.no_grad():
    print(f"test error {criterion(model(x_test), y_test).item():.4f}")
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) / 1024
print(f"memory in the end +{grown:.0f} MB")
