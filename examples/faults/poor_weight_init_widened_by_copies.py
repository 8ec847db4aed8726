"""A small network is widened from 4 to 64 hidden units by copies of its units, "so that it starts
as the small one", and without a grain of noise.

Copies get the same gradients and stay copies for ever: the wide network can do what the small one
could. The loss falls all the same (silent). The place is the hidden layer. Exact: its rows are
equal.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("hidden*",)
SILENT = True
EXACT = True
EARLY = True


class Net(nn.Module):
    def __init__(self, units):
        super().__init__()
        self.hidden = nn.Linear(64, units)
        self.out = nn.Linear(units, 10)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)

small, model = Net(4), Net(64)
with torch.no_grad():
    # Each unit sixteen times, and a sixteenth of what it gives for each.
    model.hidden.weight.copy_(small.hidden.weight.repeat(16, 1))
    model.hidden.bias.copy_(small.hidden.bias.repeat(16))
    model.out.weight.copy_(small.out.weight.repeat(1, 16) / 16)
    model.out.bias.copy_(small.out.bias)
    if healthy:
        model.hidden.weight.add_(0.05 * torch.randn_like(model.hidden.weight))
        model.out.weight.add_(0.05 * torch.randn_like(model.out.weight))

optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for images, labels in batches(x, y, size=64, steps=300, seed=seed):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
accuracy = (model(x_val).argmax(1) == y_val).float().mean()
print(f"loss {loss.item():.3f}, accuracy {accuracy:.3f}")
