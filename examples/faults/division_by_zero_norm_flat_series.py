"""A GRU for wave shapes that standardises each series inside the model, without an epsilon.

Twelve of the 900 sensors are dead and report a constant: their deviation is 0, 0 / 0 is NaN, and
one such series in a batch makes the whole model NaN. The place is the model.
"""

import torch
from data import arguments, batches, waves
from torch import nn

KIND = "division_by_zero_norm"
ACCEPT = ()
PLACE = ("scale*", "norm*")
SILENT = False
EXACT = True
EARLY = True


class InstanceStandardise(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        return centred / (centred.square().mean(1, keepdim=True).sqrt() + self.eps)


class SeriesModel(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.scale = InstanceStandardise(eps)
        self.gru = nn.GRU(1, 24, batch_first=True)
        self.fc = nn.Linear(24, 4)

    def forward(self, x):
        h, _ = self.gru(self.scale(x))
        return self.fc(h.amax(1))


healthy, seed = arguments(__doc__)
x, y = waves(seed, n=900, length=32)
dead = torch.arange(3, 900, 75)
x[dead] = x[dead, :1]  # a constant
y[dead] = 3
x_val, y_val = x[720:], y[720:]
model = SeriesModel(eps=1e-5 if healthy else 0.0)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=8e-3)
for step, (seq, label) in enumerate(batches(x[:720], y[:720], size=36, steps=240, seed=seed), 1):
    optimizer.zero_grad()
    loss = criterion(model(seq), label)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 20 == 0:
        with torch.no_grad():
            out = model(x_val)
        acc = (out.argmax(1) == y_val).float().mean().item()
        print(f"{step}: {loss.item():.3f} val {criterion(out, y_val).item():.3f} acc {acc:.3f}")
