"""An LSTM that tells wave shapes, whose last hidden state is detached before the head.

The detach was copied from a language model that carries its state from batch to batch. Only the
head learns here, on the features of a random LSTM; the loss hardly falls. The place is the model.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, waves
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("lstm*", "")
SILENT = False
EXACT = True
EARLY = True


class WaveClassifier(nn.Module):
    def __init__(self, detach, hidden=32):
        super().__init__()
        self.detach = detach
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x):
        _, (h, c) = self.lstm(x)
        if self.detach:
            h, c = h.detach(), c.detach()
        return self.head(h[-1])


healthy, seed = arguments(__doc__)
x, y = waves(seed, n=1200)
x, x_val, y, y_val = x[:900], x[900:], y[:900], y[900:]
model = WaveClassifier(detach=not healthy)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for wave, shape in batches(x, y, size=50, steps=300, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(wave), shape)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
with torch.no_grad():
    accuracy = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
