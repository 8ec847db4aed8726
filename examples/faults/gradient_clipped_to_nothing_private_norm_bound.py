"""Training with clipped gradients for each row by itself (as for privacy), with `torch.func`.

Fault: the bound of 0.002 is the one of a model whose loss was summed and whose optimizer was Adam;
here the rows' gradients have norms about 5 and SGD steps follow. The place is the loop. The loss
falls by nearly nothing.
"""

import torch
from data import arguments, batches, digits
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

KIND = "gradient_clipped_to_nothing"
ACCEPT = ("learning_rate_too_low",)
PLACE = ("loop", "optimizer")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
BOUND = 1.0 if healthy else 0.002
x, y, x_val, y_val = digits(seed)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)


def one_loss(weights, row, label):
    out = functional_call(model, weights, (row[None],))
    return F.cross_entropy(out, label[None])


per_row = vmap(grad(one_loss), in_dims=(None, 0, 0))
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=220, seed=seed), 1):
    weights = {name: p.detach() for name, p in model.named_parameters()}
    rows = per_row(weights, xb, yb)
    norm = torch.stack([g.flatten(1).norm(dim=1) for g in rows.values()]).norm(dim=0)
    factor = (BOUND / (norm + 1e-6)).clamp(max=1.0)
    for name, p in model.named_parameters():
        p.grad = torch.einsum("b,b...->...", factor, rows[name]) / len(xb)
        p.grad += 0.002 * BOUND * torch.randn_like(p)
    optimizer.step()
    if step % 40 == 0:
        with torch.no_grad():
            loss = F.cross_entropy(model(xb), yb).item()
            accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
        print(f"step {step}: loss {loss:.4f}, validation accuracy {accuracy:.3f}")
with torch.no_grad():
    accuracy = (model(x_val).argmax(1) == y_val).float().mean().item()
print(f"loss {loss:.4f} | validation accuracy {accuracy:.3f}")
