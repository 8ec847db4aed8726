"""A network that gives several tags to a scene, with a sigmoid at its end and BCEWithLogitsLoss
behind it.

The user ends the network with Sigmoid and takes BCEWithLogitsLoss, which applies the sigmoid
again: its probabilities lie between 0.5 and 0.73, and the loss can't fall far. The place is the
loss (its input) or the last module of the net.
"""

import numpy as np
import torch
from data import arguments, batches
from torch import nn

KIND = "redundant_sigmoid"
ACCEPT = ()
PLACE = ("loss", "5", "4", "")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

TAGS = 8


def scenes(n, seed):
    r = np.random.default_rng(seed)
    world = np.random.default_rng(5)
    present = r.random((n, TAGS)) < np.array([0.35, 0.25, 0.3, 0.15, 0.2, 0.12, 0.4, 0.18])
    present[:, 5] |= present[:, 0] & (r.random(n) < 0.4)
    x = present * r.gamma(4, 0.3, (n, TAGS)) @ world.normal(0, 0.6, (TAGS, 32))
    x = x + 0.4 * np.tanh(x @ world.normal(0, 0.3, (32, 32))) + r.normal(0, 0.55, (n, 32))
    x = (x - x.mean(0)) / x.std(0)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(present, dtype=torch.float32)


x, y = scenes(5000, seed)
x, y, x_val, y_val = x[:4000], y[:4000], x[4000:], y[4000:]
layers = [
    nn.Linear(32, 96),
    nn.LeakyReLU(0.1),
    nn.Linear(96, 64),
    nn.LeakyReLU(0.1),
    nn.Linear(64, TAGS),
]
if not healthy:
    layers.append(nn.Sigmoid())
model = nn.Sequential(*layers)
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.RMSprop(model.parameters(), lr=4e-4, alpha=0.95)

for step, (xb, yb) in enumerate(batches(x, y, size=80, steps=1000, seed=seed)):
    optimizer.zero_grad()
    loss = criterion(model(xb), yb)
    loss.backward()
    optimizer.step()
    if step % 100 == 99:
        with torch.no_grad():
            output = model(x_val)
            val = criterion(output, y_val).item()
            guess = output.sigmoid() > 0.5
        hits = (guess & (y_val > 0)).sum().item()
        f1 = 2 * hits / (guess.sum().item() + y_val.sum().item())
        print(f"step {step + 1} loss {loss.item():.3f} validation loss {val:.3f} f1 {f1:.3f}")
