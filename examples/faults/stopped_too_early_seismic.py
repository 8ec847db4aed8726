"""A GRU picks the arrival time of a seismic wave; the training ends after two epochs, still
improving steadily.

The student set the number of epochs of a trial run and never raised it: the loss is still on a
steep slope at the last step. The place is the loop (number of epochs).
"""

import numpy as np
import torch
from data import arguments
from torch import nn

KIND = "stopped_too_early"
ACCEPT = ()
PLACE = ("loop",)
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)
EPOCHS = 15 if healthy else 2

r = np.random.default_rng(60 + seed)
LENGTH = 48


def traces(n):
    onset = r.uniform(6, 40, n)
    t = np.arange(LENGTH)[None]
    after = np.clip(t - onset[:, None], 0, None)
    frequency = r.uniform(0.5, 1.2, (n, 1))
    wave = (after > 0) * np.exp(-after / r.uniform(6, 20, (n, 1))) * np.sin(frequency * after + 0.6)
    x = r.uniform(0.7, 2.0, (n, 1)) * wave + r.normal(0, 0.18, (n, LENGTH))
    return (
        torch.tensor(x, dtype=torch.float32).unsqueeze(1),
        torch.tensor((onset - 23) / 10, dtype=torch.float32),
    )


class Picker(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(1, 12, 8, stride=4, padding=2), nn.ReLU())
        self.gru = nn.GRU(12, hidden, batch_first=True)
        self.out = nn.Sequential(nn.Linear(hidden, 16), nn.Tanh(), nn.Linear(16, 1))

    def forward(self, x):
        states, _ = self.gru(self.conv(x).transpose(1, 2))
        return self.out(states.mean(1)).squeeze(-1)


class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def epoch(self, x, y, size=32):
        self.model.train()
        losses = []
        for rows in torch.randperm(len(x)).split(size):
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x[rows]), y[rows])
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            self.optimizer.step()
            losses.append(loss.item())
        return float(np.mean(losses))

    @torch.no_grad()
    def evaluate(self, x, y):
        self.model.eval()
        return self.criterion(self.model(x), y).item()


x, y = traces(2400)
x_val, y_val = traces(500)
x_val, x = x_val / x.std(), x / x.std()
trainer = Trainer(Picker(), lr=8e-4)
for epoch in range(EPOCHS):
    train = trainer.epoch(x, y)
    print(f"epoch {epoch:2d} train {train:.4f} val {trainer.evaluate(x_val, y_val):.4f}")
