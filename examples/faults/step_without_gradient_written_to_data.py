"""Gradient centralisation by hand: the result goes to `p.data.grad`.

The gradients come from torch.autograd.grad, are centred, and are assigned with
`p.data.grad = g`. `p.data` is a new tensor each time, so p.grad stays None and step() does nothing.
The twin writes p.grad. The place is the loop. Exact.
"""

import torch
import torch.nn.functional as F
from data import arguments, cancer
from torch import nn

KIND = "step_without_gradient"
ACCEPT = ("detached_loss",)
PLACE = ("loop", "optimizer", "")
SILENT = False
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class GatedTabular(nn.Module):
    """Feature gates and a small residual MLP."""

    def __init__(self, n, width=24):
        super().__init__()
        self.gate = nn.Linear(n, n)
        self.inp = nn.Linear(n, width)
        self.mix = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        h = F.gelu(self.inp(x * torch.sigmoid(self.gate(x))))
        h = h + F.gelu(self.mix(self.norm(h)))
        return self.out(h).squeeze(1)


def centralize(g):
    """Yong et al. 2020: zero mean over the inputs of each unit."""
    return g - g.mean(dim=tuple(range(1, g.dim())), keepdim=True) if g.dim() > 1 else g


def train_step(model, optimizer, xb, yb):
    loss = F.binary_cross_entropy_with_logits(model(xb), yb)
    params = list(model.parameters())
    grads = torch.autograd.grad(loss, params)
    for p, g in zip(params, grads, strict=True):
        if healthy:
            p.grad = centralize(g)
        else:
            p.data.grad = centralize(g)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


x, y, x_val, y_val = cancer(seed)
y, y_val = y.float(), y_val.float()
model = GatedTabular(x.shape[1])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-3)
for epoch in range(4):
    model.train()
    losses = [
        train_step(model, optimizer, x[rows], y[rows]) for rows in torch.randperm(len(x)).split(16)
    ]
    model.eval()
    with torch.no_grad():
        logits = model(x_val)
    val = F.binary_cross_entropy_with_logits(logits, y_val).item()
    acc = ((logits > 0).float() == y_val).float().mean().item()
    print(f"epoch {epoch:2d} train {sum(losses) / len(losses):.4f} val {val:.4f} acc {acc:.3f}")
