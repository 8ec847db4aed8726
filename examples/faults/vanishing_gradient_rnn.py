"""A plain RNN over 50 steps; the class depends on the first values of the series only.

The gradient that comes back to the beginning is nothing, and so is what is learned. The place is
the RNN; the twin is a GRU whose update gates begin open.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches
from torch import nn

KIND = "vanishing_gradient"
ACCEPT = ()
PLACE = ("rnn*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
n, length = 1000, 50
y = torch.randint(0, 2, (n,))
x = 0.3 * torch.randn(n, length, 1)
x[:, :3, 0] += (2 * y - 1)[:, None].float()


class Classifier(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.rnn = (nn.GRU if healthy else nn.RNN)(1, width, batch_first=True)
        self.head = nn.Linear(width, 2)
        if healthy:
            with torch.no_grad():
                self.rnn.bias_ih_l0[width : 2 * width] = 4.0

    def forward(self, series):
        out, _ = self.rnn(series)
        return self.head(out[:, -1])


model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for series, label in batches(x, y, size=50, steps=320, seed=seed):
    loss = F.cross_entropy(model(series), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
