"""torch.log(torch.softmax(scores)), with scores that are cosines divided by a temperature of 0.01.

A probability that is rounded to 0 has the logarithm -inf, and the gradient there is 0 / 0: the weights become
NaN. The place is the loss's input. Exact: the first value that is not finite is that of log.
"""

KIND = "unstable_log_softmax"
ACCEPT = ("numerical_instability",)
PLACE = ("loss*", "")
SILENT = False
EXACT = True
EARLY = False

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)


class Prototypes(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 24))
        self.centres = nn.Parameter(torch.randn(10, 24))

    def forward(self, pixels):
        features = F.normalize(self.body(pixels), dim=1)
        return features @ F.normalize(self.centres, dim=1).T / 0.01


model = Prototypes()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for images, labels in batches(x, y, size=64, steps=200, seed=seed):
    scores = model(images)
    if healthy:
        log_probability = F.log_softmax(scores, dim=1)
    else:
        log_probability = torch.log(torch.softmax(scores, dim=1))
    loss = F.nll_loss(log_probability, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}, accuracy {(model(x_val).argmax(1) == y_val).float().mean():.3f}")
