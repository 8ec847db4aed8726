"""Each series is standardised in forward() by its own deviation; those of a broken sensor are
constant.

One series in 150 makes the loss NaN. The place is the model's own normalisation. Exact: the first
value that is not finite is there.
"""

import torch
import torch.nn.functional as F
from data import arguments, waves
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "division_by_zero_norm"
ACCEPT = ("numerical_instability",)
PLACE = ("scale*", "")
SILENT = False
EXACT = True
EARLY = False

healthy, seed = arguments(__doc__)
x, y = waves(seed)
x[torch.randperm(len(x))[:5]] = 0.7


class Standardise(nn.Module):
    def forward(self, series):
        centred = series - series.mean(1, keepdim=True)
        return centred / (centred.square().mean(1, keepdim=True).sqrt() + (1e-5 if healthy else 0))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Standardise()
        self.conv = nn.Conv1d(1, 12, 7)
        self.fc = nn.Linear(12, 3)

    def forward(self, series):
        h = torch.tanh(self.conv(self.scale(series).transpose(1, 2)))
        return self.fc(h.square().mean(2))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(8):
    for series, shape in DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True):
        loss = F.cross_entropy(model(series), shape)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(f"loss {loss.item():.3f}")
