"""Counts cells in small pictures; the smoothed curve of the log holds the graph of every step.

For a curve without waiting, each step looks at fifty validation pictures and the log shows an
average, `smooth = 0.98 * smooth + 0.02 * error`. The look is taken without no_grad(), so that the
average of step 500 keeps the activations of all five hundred looks. A GPU is full in epoch three.
The place is the loop. The twin looks under no_grad().
"""

import resource

import torch
from data import arguments
from torch import nn

KIND = "memory_leak"
ACCEPT = ()
PLACE = ("loop", "loss*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def pictures(n, g):
    side = 24
    count = torch.randint(1, 8, (n,), generator=g)
    row, col = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    image = torch.zeros(n, side, side)
    for k in range(7):
        r, c = (torch.randint(2, side - 2, (n, 1, 1), generator=g) for _ in range(2))
        blob = torch.exp(-((row - r) ** 2 + (col - c) ** 2) / 3.0)
        image += blob * (count > k).view(-1, 1, 1)
    image += 0.1 * torch.randn(n, side, side, generator=g)
    return ((image - image.mean()) / image.std()).unsqueeze(1), (count.float() - 4) / 2


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 5, padding=2)
        self.conv2 = nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.head = nn.Linear(16, 1)

    def forward(self, x):
        x = self.conv3(self.conv2(self.conv1(x).relu()).relu()).relu()
        return self.head(x.mean((2, 3))).squeeze(1)


g = torch.Generator().manual_seed(seed)
x, y = pictures(1200, g)
x, x_val, y, y_val = x[:1000], x[1000:], y[:1000], y[1000:]
model = Counter()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
smooth = None
for epoch in range(9):
    for rows in torch.randperm(len(x), generator=g).split(25):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.set_grad_enabled(not healthy):
            error = (model(x_val[:50]) - y_val[:50]).abs().mean()
        smooth = error if smooth is None else 0.98 * smooth + 0.02 * error
    if epoch % 3 == 2:
        with torch.no_grad():
            val = nn.functional.mse_loss(model(x_val), y_val).item()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"epoch {epoch + 1} smoothed {smooth.item():.3f} val {val:.3f} memory {memory:.0f} MB"
        )
