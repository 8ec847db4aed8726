"""An LSTM forecaster whose clipping norm was given the tolerance of the configuration.

`clip_grad_norm_(parameters, cfg.tol)` with tol = 1e-4 instead of cfg.max_norm = 1: SGD moves by at
most lr * 1e-4 a step, the forecast stays near the mean of the series. The place is the loop.
"""

from dataclasses import dataclass

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = True


@dataclass
class Config:
    window: int = 24
    hidden: int = 24
    lr: float = 0.2
    max_norm: float = 1.0
    tol: float = 1e-4
    epochs: int = 22
    batch: int = 48


class Forecaster(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.readout = nn.Linear(hidden, 1)

    def forward(self, window):
        out, _ = self.lstm(window)
        return self.readout(out[:, -1]).squeeze(-1)


healthy, seed = arguments(__doc__)
cfg = Config()
rng = np.random.default_rng(seed)
t = np.arange(1500)
series = (
    np.sin(t * 2 * np.pi / 24) + 0.6 * np.sin(t * 2 * np.pi / 60 + 1) + rng.normal(0, 0.1, 1500)
)
cut = 1150
series = torch.tensor((series - series[:cut].mean()) / series[:cut].std(), dtype=torch.float32)
windows = series.unfold(0, cfg.window + 1, 1)
train, test = windows[: cut - cfg.window], windows[cut:]

model = Forecaster(cfg.hidden)
mse = nn.MSELoss()
sgd = torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=0.9)
for epoch in range(cfg.epochs):
    epoch_loss, n = 0.0, 0
    for rows in torch.randperm(len(train)).split(cfg.batch):
        past, future = train[rows, :-1].unsqueeze(-1), train[rows, -1]
        loss = mse(model(past), future)
        sgd.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), cfg.max_norm if healthy else cfg.tol)
        sgd.step()
        epoch_loss += loss.item() * len(rows)
        n += len(rows)
with torch.no_grad():
    test_loss = mse(model(test[:, :-1].unsqueeze(-1)), test[:, -1]).item()
print(f"loss {epoch_loss / n:.4f}, test loss {test_loss:.4f}")
