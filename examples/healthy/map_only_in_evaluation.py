"""A classifier that draws its pictures on a map in evaluations: a random projection to the plane,
which training never calls and the optimizer holds like everything else."""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

ODD = "a layer that the optimizer holds has no gradient in any step: only evaluations call it"

_, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, 10)
        self.plane = nn.Linear(32, 2)

    def forward(self, pixels):
        h = self.trunk(pixels)
        return self.head(h) if self.training else (self.head(h), self.plane(h))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for step, (pixels, labels) in enumerate(batches(x, y, size=64, steps=400, seed=seed)):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(pixels), labels)
    loss.backward()
    optimizer.step()
    if step % 66 == 65:
        model.eval()
        with torch.no_grad():
            out, points = model(x_val)
            spread = torch.stack([points[y_val == k].mean(0) for k in range(10)]).std(0).mean()
        model.train()
print(
    f"loss {loss.item():.3f}, accuracy {(out.argmax(1) == y_val).float().mean():.3f}, "
    f"spread of the classes on the map {spread.item():.2f}"
)
