"""Diabetes: a second head says the blood pressure that was left out of the inputs; its loss has the
weight 0 in the first half, as in many schedules, and is 0.3 in the end."""

import torch
import torch.nn.functional as F
from data import arguments, batches, diabetes
from torch import nn

ODD = "all gradients of the second head are exactly 0 for 200 steps: the weight of its loss is 0"

_, seed = arguments(__doc__)
x, y, x_val, y_val = diabetes(seed)
y, y_val = y.reshape(-1, 1), y_val.reshape(-1, 1)
PRESSURE = 3


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(9, 32), nn.Tanh(), nn.Dropout(0.1))
        self.progress, self.pressure = nn.Linear(32, 1), nn.Linear(32, 1)

    def forward(self, given):
        h = self.trunk(given)
        return self.progress(h), self.pressure(h)


def without(rows):
    return torch.cat([rows[:, :PRESSURE], rows[:, PRESSURE + 1 :]], 1)


model = TwoHeads()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
for step, (rows, target) in enumerate(batches(x, y, size=32, steps=400, seed=seed)):
    weight = 0.3 * min(1.0, max(0, step - 200) / 100)
    progress, pressure = model(without(rows))
    loss = F.mse_loss(progress, target)
    second = F.mse_loss(pressure, rows[:, PRESSURE : PRESSURE + 1])
    optimizer.zero_grad()
    (loss + weight * second).backward()
    optimizer.step()
    if step % 50 == 49:
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(without(x_val))[0], y_val)
        model.train()
print(f"loss {loss.item():.3f}, validation loss {val.item():.3f}, pressure {second.item():.3f}")
