"""A stacking model reads the log-probabilities that five base models give to four classes, and says
whether the ensemble is to be trusted. Its residual blocks are pre-activation blocks.

With batch normalisation taken out ("not needed for 20 features"), the first thing a block does is
a ReLU, and log-probabilities are never above zero: zero is all that it passes on, by its shortcut
too, and every answer is the same. The place is the first block. The twin keeps the normalisation
before the ReLU.
"""

from itertools import pairwise

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ()
PLACE = ("blocks*", "input*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
MODELS, CLASSES = 5, 4


def ensemble(n, g):
    """Base models of differing quality; two of them share their mistakes."""
    truth = torch.randint(0, CLASSES, (n,), generator=g)
    hard = torch.rand(n, 1, 1, generator=g)
    signal = F.one_hot(truth, CLASSES)[:, None, :] * (3.5 - 2.5 * hard)
    noise = torch.randn(n, MODELS, CLASSES, generator=g)
    noise[:, 1] = 0.3 * noise[:, 1] + 0.95 * noise[:, 0]
    logits = signal + noise * torch.tensor([1.0, 1.0, 1.3, 1.6, 0.8])[None, :, None]
    log_p = logits.log_softmax(-1)
    votes = log_p.argmax(-1)
    trusted = (votes == votes.mode(1).values[:, None]).sum(1) >= 4  # do four of five agree?
    return log_p.flatten(1), trusted.float()


class PreActivation(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.norm1 = nn.BatchNorm1d(n_in) if healthy else nn.Identity()
        self.act1 = nn.ReLU()
        self.fc1 = nn.Linear(n_in, n_out)
        self.norm2 = nn.BatchNorm1d(n_out) if healthy else nn.Identity()
        self.act2 = nn.ReLU()
        self.fc2 = nn.Linear(n_out, n_out)
        self.shortcut = None if n_in == n_out else nn.Linear(n_in, n_out, bias=False)

    def forward(self, x):
        h = self.act1(self.norm1(x))
        skipped = x if self.shortcut is None else self.shortcut(h)
        return skipped + self.fc2(self.act2(self.norm2(self.fc1(h))))


class Stacker(nn.Module):
    def __init__(self, widths=(MODELS * CLASSES, 48, 48)):
        super().__init__()
        sizes = pairwise(widths)
        self.blocks = nn.Sequential(*(PreActivation(a, b) for a, b in sizes))
        self.out = nn.Linear(widths[-1], 1)

    def forward(self, x):
        return self.out(self.blocks(x)).squeeze(1)


g = torch.Generator().manual_seed(seed)
x, y = ensemble(4000, g)
x_val, y_val = ensemble(1500, g)
net = Stacker()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(10):
    net.train()
    total = 0.0
    for rows in torch.randperm(len(x)).split(80):
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(net(x[rows]), y[rows])
        loss.backward()
        opt.step()
        total += loss.item() * len(rows)
    net.eval()
    with torch.no_grad():
        right = ((net(x_val) > 0) == y_val.bool()).float().mean()
    print(
        f"epoch {epoch + 1}: loss {total / len(x):.4f}, validation accuracy {right:.3f} "
        f"(all trusted: {y_val.mean():.3f})"
    )
