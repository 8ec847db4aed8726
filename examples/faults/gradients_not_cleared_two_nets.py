"""Deep mutual learning of two nets; a copied line clears the first net's gradients twice.

`opt_b.zero_grad()` never runs, so net B follows the sum of all gradients since the start: its loss
swings and ends far above that of its twin, and its answers pull net A along. The place is the
optimizer.
"""

import torch
import torch.nn.functional as F
from data import arguments, digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "gradients_not_cleared"
ACCEPT = ()
PLACE = ("loop", "optimizer", "net_b*", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)
x, y, x_val, y_val = digits(seed)
train_loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True, drop_last=True)

net_a = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
net_b = nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 10))
opt_a = torch.optim.Adam(net_a.parameters(), lr=2e-3)
opt_b = torch.optim.Adam(net_b.parameters(), lr=2e-3)


def mutual(own, other):
    """How far `own` is from what the other net says (which gets no gradient from it)."""
    return F.kl_div(own.log_softmax(1), other.detach().softmax(1), reduction="batchmean")


for epoch in range(12):
    for pixels, label in train_loader:
        out_a, out_b = net_a(pixels), net_b(pixels)
        loss_a = F.cross_entropy(out_a, label) + 0.5 * mutual(out_a, out_b)
        loss_b = F.cross_entropy(out_b, label) + 0.5 * mutual(out_b, out_a)

        opt_a.zero_grad()
        loss_a.backward()
        opt_a.step()

        if healthy:
            opt_b.zero_grad()
        else:
            opt_a.zero_grad()
        loss_b.backward()
        opt_b.step()
    with torch.no_grad():
        acc_a = (net_a(x_val).argmax(1) == y_val).float().mean()
        acc_b = (net_b(x_val).argmax(1) == y_val).float().mean()
print(
    f"loss a {loss_a.item():.3f}, loss b {loss_b.item():.3f}, accuracy {acc_a:.3f} and {acc_b:.3f}"
)
