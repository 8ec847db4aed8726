"""torch.log(torch.softmax(scores)) after classes that cannot be were set to -inf.

It is known of each image whether its digit is odd. A class that is ruled out has the probability
0, its logarithm is -inf, and the gradient there is 0 / 0: all weights are NaN after a step. The
place is the loss's input. Exact: the first values that are not finite are there.
"""

import torch
import torch.nn.functional as F
from data import arguments, batches, digits
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ("numerical_instability",)
PLACE = ("loss*", "", "2")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
classes = torch.arange(10)
for images, labels in batches(x, y, size=64, steps=200, seed=seed):
    ruled_out = (labels[:, None] - classes) % 2 == 1
    scores = model(images).masked_fill(ruled_out, float("-inf"))
    if healthy:
        log_probability = F.log_softmax(scores, dim=1)
    else:
        log_probability = torch.log(torch.softmax(scores, dim=1))
    loss = F.nll_loss(log_probability, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"loss {loss.item():.3f}")
