"""Trains a pointer net that picks one of up to twelve items, with log(softmax(...)) on scores that
are masked at the padding.

The masked scores of -1e9 give probabilities of exactly zero; their logarithm is minus infinity, and
although the loss does not pick them, 0 * inf in the backward pass makes the gradients and then all
weights NaN. The twin uses log_softmax. The place is the loss.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss*",)
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def offers(n, most=12):
    """Bundles of offers with five properties; wanted is the one of the highest worth."""
    x = torch.randn(n, most, 5)
    length = torch.randint(4, most + 1, (n, 1))
    pad = torch.arange(most) >= length
    worth = x[..., 0] - 0.5 * x[..., 1] ** 2 + x[..., 2] * x[..., 3] + torch.sin(2 * x[..., 4])
    best = worth.masked_fill(pad, -1e9).argmax(1)
    return x.masked_fill(pad.unsqueeze(-1), 0.0), pad, best


class PointerNet(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.item = nn.Sequential(
            nn.Linear(5, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU()
        )
        self.score = nn.Linear(hidden, 1)

    def forward(self, x, pad):
        return self.score(self.item(x)).squeeze(-1).masked_fill(pad, -1e9)


def pointer_loss(scores, target):
    log_p = F.log_softmax(scores, dim=1) if healthy else torch.log(torch.softmax(scores, dim=1))
    return F.nll_loss(log_p, target)


train_set, (x_val, pad_val, y_val) = offers(4000), offers(800)
loader = DataLoader(TensorDataset(*train_set), batch_size=64, shuffle=True)
model = PointerNet()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=14)

for epoch in range(1, 15):
    model.train()
    total = 0.0
    for xb, pb, yb in loader:
        optimizer.zero_grad()
        loss = pointer_loss(model(xb, pb), yb)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        scores = model(x_val, pad_val)
        val = pointer_loss(scores, y_val).item()
        acc = (scores.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch:2d} train {total / len(loader):.4f} val {val:.4f} acc {acc:.3f}")
