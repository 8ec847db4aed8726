"""A network for two targets at once whose losses are put into a new tensor before the sum.

torch.tensor([...], requires_grad=True) starts a graph of its own: backward() runs without
complaint, and no parameter gets a gradient. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, images
from torch import nn

KIND = "detached_loss"
ACCEPT = ("detached_graph", "step_without_gradient")
PLACE = ("loop", "loss*", "")
SILENT = False
EXACT = True
EARLY = True


class TwoHeads(nn.Module):
    """Which digit it is, and how much ink it has."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()
        )
        self.shared = nn.Linear(192, 48)
        self.digit = nn.Linear(48, 10)
        self.ink = nn.Linear(48, 1)

    def forward(self, x):
        h = F.relu(self.shared(self.trunk(x)))
        return self.digit(h), self.ink(h).squeeze(1)


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
amount = x.mean((1, 2, 3))
amount = (amount - amount.mean()) / amount.std()
model = TwoHeads()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
for pixels, label, ink in batches(x, y, amount, size=64, steps=200, seed=seed):
    optimizer.zero_grad()
    logits, ink_hat = model(pixels)
    loss_digit = F.cross_entropy(logits, label)
    loss_ink = F.mse_loss(ink_hat, ink)
    if healthy:
        losses = torch.stack([loss_digit, loss_ink])
    else:
        losses = torch.tensor([loss_digit.item(), loss_ink.item()], requires_grad=True)
    loss = losses.sum()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    accuracy = (model(x_val)[0].argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
