"""Series are "jittered" by noise three times their own size and a scale from 0 to 4.

The training loss stays near guessing; validation on clean series is no better. The place is the
loader.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, waves
from torch import nn

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed)
x, x_val, y, y_val = x[:600], x[600:], y[:600], y[600:]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv1d(1, 12, 5, padding=2)
        self.conv2 = nn.Conv1d(12, 16, 5, padding=2)
        self.fc = nn.Linear(16, 3)

    def forward(self, series):
        h = F.relu(self.conv1(series.transpose(1, 2)))
        return self.fc(F.relu(self.conv2(h)).mean(2))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for step, (series, shape) in enumerate(batches(x, y, size=40, steps=240, seed=seed)):
    model.train()
    strength, scale = (0.05, (0.9, 1.1)) if healthy else (2.5, (0.0, 4.0))
    scales = torch.empty(len(series), 1, 1).uniform_(*scale)
    seen = series * scales + strength * torch.randn_like(series)
    loss = F.cross_entropy(model(seen), shape)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 29:
        model.eval()
        with torch.no_grad():
            val_loss = F.cross_entropy(model(x_val), y_val)
print(f"loss {loss.item():.3f}, validation {val_loss:.3f}")
