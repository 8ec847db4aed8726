"""InfoNCE by hand, log(exp(s) / exp(s).sum()), with a temperature of 0.01: exp(100) is infinite.

The loss is NaN as soon as two vectors agree well. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from torch import nn

KIND = "unstable_log_softmax"
ACCEPT = ("numerical_instability",)
PLACE = ("loss*", "")
SILENT = False
EXACT = True
EARLY = False


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.projection = nn.Linear(64, 16)

    def forward(self, x):
        return F.normalize(self.projection(self.trunk(x)), dim=1)


def contrastive_loss(a, b, temperature, stable):
    similarity = a @ b.T / temperature
    if stable:
        return F.cross_entropy(similarity, torch.arange(len(a)))
    e = torch.exp(similarity)
    return -torch.log(e.diag() / e.sum(1)).mean()


healthy, seed = arguments(__doc__)
x = torch.tensor(load_digits().data / 8 - 1, dtype=torch.float32)
model = Projector()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(250):
    rows = x[torch.randint(len(x), (64,))]
    view1 = rows + 0.3 * torch.randn_like(rows)
    view2 = rows + 0.3 * torch.randn_like(rows)
    temperature = 0.1 if healthy else 0.01
    loss = contrastive_loss(model(view1), model(view2), temperature, stable=healthy)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(f"loss {loss.item():.3f}")
