"""Varieties of wheat by the shape of the grain; NLLLoss is given scores without log_softmax.

The last layer was nn.LogSoftmax until the model was exported for the app, which wanted the scores.
The loss is still NLLLoss: the mean of minus the right score, which falls for ever as the scores
grow.
The place is the loss. The twin applies log_softmax before the loss.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "missing_softmax"
ACCEPT = ("wrong_loss",)
PLACE = ("loss*", "out", "output*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def grains(n, g):
    """Length, width, crease, area, perimeter, asymmetry and colour of six varieties."""
    form = torch.Generator().manual_seed(21)
    middle = 1.1 * torch.randn(6, 7, generator=form)
    turn = torch.randn(6, 7, 7, generator=form) / 2.6
    y = torch.randint(0, 6, (n,), generator=g)
    x = middle[y] + (turn[y] @ torch.randn(n, 7, 1, generator=g)).squeeze(2)
    return (x - x.mean(0)) / x.std(0), y


class GrainNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(7, 40), nn.ReLU(), nn.Linear(40, 40), nn.ReLU())
        self.out = nn.Linear(40, 6)

    def forward(self, x):
        return self.out(self.body(x))


x, y = grains(2000, torch.Generator().manual_seed(seed))
loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
model, criterion = GrainNet(), nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    total = 0.0
    for grain, variety in loader:
        scores = model(grain)
        loss = criterion(scores.log_softmax(1) if healthy else scores, variety)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        right = (model(x[1600:]).argmax(1) == y[1600:]).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(loader):.3f} validation {right:.3f}")
