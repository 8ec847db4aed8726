"""The upper and the lower half of a digit go through a tower each; the second one runs under
no_grad, left over from when its vectors were computed once.

The first tower and the head learn (silent). The place is the second tower. Exact: parameters that
the optimizer holds, whose values reach the loss and whose gradients do not exist.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "detached_graph"
ACCEPT = ()
PLACE = ("lower*",)
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)


def tower():
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(96, 24),
        nn.ReLU(),
    )


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.upper, self.lower = tower(), tower()
        self.head = nn.Linear(48, 10)

    def forward(self, pictures):
        above, below = pictures.split(4, dim=2)
        first = self.upper(above)
        with torch.set_grad_enabled(healthy):
            second = self.lower(below)
        return self.head(torch.cat([first, second], 1))


model = TwoTowers()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for pictures, labels in batches(x, y, size=48, steps=240, seed=seed):
    loss = F.cross_entropy(model(pictures), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    hits = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy {hits:.3f}")
