"""Credit scores with the same share of acceptances in two groups: the multiplier of the
constraint is raised by gradient ascent while the net descends.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = (
    "one parameter climbs the loss (its gradient's sign "
    "is turned), the cross-entropy rises after a while"
)

_, seed = arguments(__doc__)
g = torch.Generator().manual_seed(333 + seed)
n = 3000
group = (torch.rand(n, generator=g) < 0.4).float()
x = torch.randn(n, 8, generator=g)
x[:, 0] += 0.4 * group
x[:, 1] -= 0.2 * group
logit = 1.3 * x[:, 0] - 0.9 * x[:, 1] + x[:, 2] * x[:, 3] + 0.8 * x[:, 4] - 0.4
y = (torch.rand(n, generator=g) < logit.sigmoid()).float()
x = (x - x[:2200].mean(0)) / x[:2200].std(0)

net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
multiplier = nn.Parameter(torch.zeros(()))
descent = torch.optim.Adam(net.parameters(), lr=1e-3)
ascent = torch.optim.SGD([multiplier], lr=0.08, maximize=True)


def terms(x, y, group):
    out = net(x).squeeze(1)
    rate = out.sigmoid()
    gap = (rate * group).sum() / group.sum() - (rate * (1 - group)).sum() / (1 - group).sum()
    return F.binary_cross_entropy_with_logits(out, y), gap, ((out > 0) == (y > 0)).float().mean()


loader = DataLoader(TensorDataset(x[:2200], y[:2200], group[:2200]), batch_size=100, shuffle=True)
for epoch in range(20):
    net.train()
    bce_seen = 0.0
    for batch in loader:
        bce, gap, _ = terms(*batch)
        loss = bce + multiplier * gap + gap.pow(2)
        descent.zero_grad()
        ascent.zero_grad()
        loss.backward()
        descent.step()
        ascent.step()
        bce_seen += bce.item() / len(loader)
    net.eval()
    with torch.no_grad():
        bce, gap, accuracy = terms(x[2200:], y[2200:], group[2200:])
    if epoch % 4 == 3:
        print(
            f"epoch {epoch + 1} bce {bce_seen:.3f} val {bce:.3f} accuracy {accuracy:.3f} "
            f"gap {gap:+.3f} multiplier {multiplier.item():.3f}"
        )
