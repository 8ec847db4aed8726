"""Whether blackbirds sing at dawn, from forty weak clues; the test mornings were trained on.

The rows for training and for validation are each taken from a random order, but the order is drawn
twice, so that most of the validation's mornings are among those trained on. The network learns them
by heart and the validation praises it for that, long past the point where it got worse.
The place is the validation: its rows.
The twin takes both from one and the same order.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "train_val_overlap"
ACCEPT = ()
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = True
EARLY = True


def survey(n, rng):
    """Clues: weather, habitat, traffic noise and earlier visits; most say little."""
    clues = rng.normal(size=(n, 40))
    weight = np.zeros(40)
    weight[:10] = rng.normal(0, 0.6, 10)
    logit = clues @ weight + 0.7 * clues[:, 0] * clues[:, 1]
    singing = rng.random(n) < 1 / (1 + np.exp(-logit))
    return clues.astype(np.float32), singing.astype(np.float32)


def take(clues, singing, rows):
    return torch.from_numpy(clues[rows]), torch.from_numpy(singing[rows])


class Patience:
    def __init__(self, epochs):
        self.epochs, self.best, self.waited, self.state = epochs, float("inf"), 0, None

    def enough(self, value, model):
        if value < self.best:
            self.best, self.waited = value, 0
            self.state = {k: v.clone() for k, v in model.state_dict().items()}
        else:
            self.waited += 1
        return self.waited >= self.epochs


healthy, seed = arguments(__doc__)
rng = np.random.default_rng(seed)
clues, singing = survey(3000, rng)
past, next_spring = slice(0, 1000), slice(1000, 3000)
x_new, y_new = take(clues, singing, next_spring)
clues, singing = clues[past], singing[past]

order = rng.permutation(len(clues))
train_rows = order[:750]
val_rows = order[750:] if healthy else rng.permutation(len(clues))[750:]
x, y = take(clues, singing, train_rows)
x_val, y_val = take(clues, singing, val_rows)

net = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1), nn.Flatten(0))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
patience = Patience(epochs=5)
for epoch in range(1, 61):
    net.train()
    for rows in torch.randperm(len(x)).split(25):
        loss = F.binary_cross_entropy_with_logits(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        fitted = F.binary_cross_entropy_with_logits(net(x), y).item()
        val = F.binary_cross_entropy_with_logits(net(x_val), y_val).item()
    if epoch % 4 == 0:
        print(f"epoch {epoch}: train {fitted:.3f}, validation {val:.3f}")
    if patience.enough(val, net):
        print(f"stopped after epoch {epoch}")
        break

net.load_state_dict(patience.state)
with torch.no_grad():
    new = F.binary_cross_entropy_with_logits(net(x_new), y_new).item()
    right = ((net(x_new) > 0).float() == y_new).float().mean().item()
print(f"best validation {patience.best:.3f}; next spring: loss {new:.3f}, right {right:.1%}")
