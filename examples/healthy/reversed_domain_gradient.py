"""Domain adaptation with a gradient reversal layer (DANN): features that do not tell two
laboratories apart.

Nothing is wrong; there is no place to name.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

ODD = (
    "One of the two losses is driven up to about log 2 and wobbles there: the features learn to "
    "fool the domain classifier."
)

_, seed = arguments(__doc__)


class Reverse(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, strength):
        ctx.strength = strength
        return x.view_as(x)

    @staticmethod
    def backward(ctx, g):
        return -ctx.strength * g, None


def laboratory(n, offset):
    """Two diseases by six markers; four more columns show only the laboratory."""
    sick = torch.randint(0, 2, (n,))
    markers = torch.randn(n, 6)
    markers[:, :3] += (1.2 * (2 * sick - 1))[:, None]
    markers[:, 3] = markers[:, 4] * (2 * sick - 1) + 0.5 * torch.randn(n)
    return torch.cat([markers, offset + torch.randn(n, 4)], 1) / 1.3, sick


source_x, source_y = laboratory(2000, 0.8)
target_x, target_y = laboratory(2000, -0.8)
feature = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
disease = nn.Linear(24, 2)
domain = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 2))
everything = nn.ModuleDict({"feature": feature, "disease": disease, "domain": domain})
optimizer = torch.optim.Adam(everything.parameters(), lr=2e-3, betas=(0.5, 0.999))
STEPS = 500
where = torch.cat([torch.zeros(100), torch.ones(100)]).long()
for step in range(STEPS):
    strength = 0.3 * (2 / (1 + 2.718 ** (-10 * step / STEPS)) - 1)
    s, t = torch.randint(2000, (100,)), torch.randint(1000, (100,))
    h = feature(torch.cat([source_x[s], target_x[t]]))
    disease_loss = F.cross_entropy(disease(h[:100]), source_y[s])
    domain_loss = F.cross_entropy(domain(Reverse.apply(h, strength)), where)
    optimizer.zero_grad()
    (disease_loss + domain_loss).backward()
    optimizer.step()
    if step == 350:
        optimizer.param_groups[0]["lr"] = 5e-4
    if step % 100 == 99:
        with torch.no_grad():
            right = (disease(feature(target_x[1000:])).argmax(1) == target_y[1000:]).float().mean()
        print(
            f"{step + 1}: disease {disease_loss.item():.3f} domain {domain_loss.item():.3f} "
            f"target accuracy {right.item():.3f}"
        )
