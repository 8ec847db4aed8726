"""clip_grad_value_(parameters, 1e-5) in a recurrent network that had exploded before.

All entries become +-0.00001; SGD hardly moves. The place is the optimizer (the clipping before it).
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, waves
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("optimizer", "loop")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, y = waves(seed, length=24)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 20, batch_first=True)
        self.head = nn.Linear(20, 3)

    def forward(self, series):
        return self.head(self.lstm(series)[0].mean(1))


model = Classifier()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
for series, shape in batches(x, y, size=40, steps=250, seed=seed):
    loss = F.cross_entropy(model(series), shape)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5 if healthy else 1e-5)
    optimizer.step()
print(f"loss {loss.item():.3f}")
