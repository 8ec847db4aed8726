"""Set attention whose embedding and slots are built on the first call, when the width is known.

The optimizer is made before that call, from what the model has then: the two never learn. The twin
makes a dry run first. The places are the two late parts (or the optimizer).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "parameters_not_in_optimizer"
ACCEPT = ("frozen_parameters",)
PLACE = (
    "embed", "embed.0", "embed.2", "embed.0.weight", "embed.0.bias", "embed.2.weight",
    "embed.2.bias", "slots", "optimizer", "",
)  # fmt: skip
SILENT = True
EXACT = True
EARLY = True


class SlotPooling(nn.Module):
    """Learned slots look at the elements of a set; their sums go on to the answer."""

    def __init__(self, dim=24, n_slots=4):
        super().__init__()
        self.dim, self.n_slots = dim, n_slots
        self.embed = None
        self.answer = nn.Linear(n_slots * dim, 1)

    def build(self, width):
        self.embed = nn.Sequential(
            nn.Linear(width, self.dim), nn.ReLU(), nn.Linear(self.dim, self.dim)
        )
        self.slots = nn.Parameter(torch.randn(self.n_slots, self.dim) / self.dim**0.5)

    def forward(self, elements):
        if self.embed is None:
            self.build(elements.shape[-1])
        h = self.embed(elements)
        attention = torch.softmax(self.slots @ h.transpose(1, 2), dim=-1)
        return self.answer((attention @ h).flatten(1)).squeeze(1)


def sets(n, g):
    """Eight items with price, quality and two traits each: the price of the best item, roughly."""
    x = torch.randn(n, 8, 4, generator=g)
    y = (torch.softmax(2.5 * x[:, :, 1], 1) * x[:, :, 0]).sum(1) + 0.3 * x[:, :, 2].amax(1)
    return x, (y - y.mean()) / y.std()


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(9000 + seed)
x, y = sets(4000, g)
x_val, y_val = sets(600, g)
model = SlotPooling()
if healthy:
    model(x[:1])
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)

for epoch in range(7):
    model.train()
    for rows in torch.randperm(len(x), generator=g).split(50):
        loss = F.mse_loss(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        val = F.mse_loss(model(x_val), y_val).item()
    print(f"epoch {epoch}: train {loss.item():.3f}, val {val:.3f}")
