"""Six toxicity assays are learned by one trunk with six heads; the tasks' losses are gathered as
plain numbers before backward.

The user sums up a list of `.item()`s "to weigh the tasks" and silences autograd's complaint with
requires_grad=True. backward runs and reaches no parameter at all. The place is the loss.
"""

from types import SimpleNamespace

import numpy as np
import torch
from data import arguments, batches
from sklearn.metrics import roc_auc_score
from torch import nn

KIND = "detached_loss"
ACCEPT = ("step_without_gradient", "detached_graph")
PLACE = ("loss", "loop", "*")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

args = SimpleNamespace(molecules=4000, bits=256, assays=6, width=128, bs=128, steps=400, lr=1e-3)


def fingerprints(n, bits, assays):
    """Molecules as sets of fragments which switch hashed bits on; an assay answers to pairs of fragments."""  # noqa: E501
    rng = np.random.default_rng(seed + 5)
    fragments = rng.random((40, bits)) < 0.06
    has = rng.random((n, 40)) < rng.uniform(0.05, 0.4, 40)
    bits_on = (has.astype(float) @ fragments) > 0
    flip = rng.random(bits_on.shape) < 0.005
    x = np.logical_xor(bits_on, flip).astype(np.float32)
    w = rng.normal(0, 1.1, (40, assays)) * (rng.random((40, assays)) < 0.35)
    pair = has[:, :20] & has[:, 20:]
    logit = has @ w + pair @ rng.normal(0, 1.5, (20, assays))
    logit = logit - np.quantile(logit, 0.6, axis=0)
    y = (rng.random(logit.shape) < 1 / (1 + np.exp(-2 * logit))).astype(np.float32)
    return torch.from_numpy(x), torch.from_numpy(y)


class AssayNet(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.trunk = nn.Sequential(
            nn.Linear(a.bits, a.width),
            nn.BatchNorm1d(a.width),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Linear(a.width, a.width),
            nn.ReLU(),
            nn.Dropout(0.3),
        )
        self.heads = nn.ModuleList(nn.Linear(a.width, 1) for _ in range(a.assays))

    def forward(self, x):
        h = self.trunk(x)
        return [head(h).squeeze(1) for head in self.heads]


x, y = fingerprints(args.molecules, args.bits, args.assays)
cut = int(0.8 * len(x))
x_val, y_val = x[cut:], y[cut:]
net = AssayNet(args)
opt = torch.optim.AdamW(net.parameters(), lr=args.lr, weight_decay=0.05)
bce = nn.BCEWithLogitsLoss()
weight = torch.full((args.assays,), 1.0 / args.assays)

for step, (xb, yb) in enumerate(
    batches(x[:cut], y[:cut], size=args.bs, steps=args.steps, seed=seed)
):
    net.train()
    opt.zero_grad()
    losses = []
    for t, logit in enumerate(net(xb)):
        losses.append(bce(logit, yb[:, t]))
    if healthy:
        loss = (torch.stack(losses) * weight).sum()
    else:
        loss = (torch.tensor([l.item() for l in losses], requires_grad=True) * weight).sum()  # noqa: E741
    loss.backward()
    opt.step()
    if step % 100 == 99:
        net.eval()
        with torch.no_grad():
            p = torch.stack(net(x_val), 1)
        auc = np.mean([roc_auc_score(y_val[:, t], p[:, t]) for t in range(args.assays)])
        val = bce(p, y_val).item()
        print(f"{step + 1:4d} loss {loss.item():.4f} val loss {val:.4f} mean auc {auc:.4f}")
