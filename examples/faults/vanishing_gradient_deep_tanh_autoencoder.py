"""A deep auto-encoder of the digits: sixteen tanh layers with small default-like weights.

Depth was added in the hope of better codes. Each tanh layer starts from uniform(-1/sqrt(n),
1/sqrt(n)), a third of the variance that would keep the size, so the gradient shrinks on its way and
the net gives the mean digit for all. The place is the first layers ("encoder"). The twin has
skip connections around the layers.
"""

import torch
from data import arguments, batches, digits
from torch import nn
from torch.nn import functional as F

KIND = "vanishing_gradient"
ACCEPT = ("poor_weight_init",)
PLACE = (
    "encoder",
    "encoder.0",
    "encoder.0.linear",
    "encoder.0.linear.weight",
    "first",
    "first.weight",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x, _, x_val, _ = digits(seed)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, h):
        out = torch.tanh(self.linear(h))
        return h + 0.3 * out if healthy else out


class DeepAutoEncoder(nn.Module):
    def __init__(self, width=48, code=12, depth=8):
        super().__init__()
        self.first = nn.Linear(64, width)
        self.encoder = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.to_code = nn.Linear(width, code)
        self.from_code = nn.Linear(code, width)
        self.decoder = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.last = nn.Linear(width, 64)

    def forward(self, x):
        code = self.to_code(self.encoder(self.first(x)))
        return self.last(self.decoder(self.from_code(code)))


model = DeepAutoEncoder()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step, (batch,) in enumerate(batches(x, size=64, steps=500, seed=seed)):
    loss = F.mse_loss(model(batch), batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        model.eval()
        with torch.no_grad():
            val = F.mse_loss(model(x_val), x_val).item()
        model.train()
        print(f"step {step + 1} loss {loss.item():.4f} val {val:.4f}")
mean_digit = F.mse_loss(x.mean(0).expand_as(x_val), x_val).item()
print(f"error of the mean digit: {mean_digit:.4f}")
