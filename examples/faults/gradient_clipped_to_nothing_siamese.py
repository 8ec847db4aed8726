"""A siamese network learns whether two handwritten digits are the same, with gradients clipped to
a norm of 0.0001.

The user took a clipping bound four orders too small (meant as a "safe" value), so plain SGD
barely moves the weights. The place is the clipping in the loop.
"""

import torch
from data import arguments, digits
from torch import nn

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MAX_NORM = 5.0 if healthy else 1e-4


class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 24))
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.offset = nn.Parameter(torch.tensor(0.0))

    def forward(self, a, b):
        distance = (self.encoder(a) - self.encoder(b)).square().mean(1)
        return self.offset - self.scale * distance


def pairs(x, y, n, g):
    """Half the pairs of one class."""
    first = torch.randint(0, len(x), (n,), generator=g)
    second = torch.randint(0, len(x), (n,), generator=g)
    for k in range(0, n, 2):
        same = (y == y[first[k]]).nonzero().squeeze(1)
        second[k] = same[torch.randint(0, len(same), (1,), generator=g)]
    return x[first], x[second], (y[first] == y[second]).float()


x, y, x_val, y_val = digits(seed)
g = torch.Generator().manual_seed(seed)
a_val, b_val, same_val = pairs(x_val, y_val, 1000, g)
model = Siamese()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(1, 601):
    a, b, same = pairs(x, y, 64, g)
    optimizer.zero_grad()
    loss = nn.functional.binary_cross_entropy_with_logits(model(a, b), same)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            out = model(a_val, b_val)
            val = nn.functional.binary_cross_entropy_with_logits(out, same_val)
        right = ((out > 0) == (same_val > 0.5)).float().mean()
        print(f"step {step}: loss {loss.item():.3f}, val loss {val:.3f}, val accuracy {right:.3f}")
