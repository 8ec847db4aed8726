"""A table of patients in which each was exported about three times (one row for each visit's
bill).

Fault: `drop_duplicates` was dropped from the notebook before the random split: most rows of the
validation are in the training, too. The place is the loader. Both losses fall; new patients show
less. Exact.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "train_val_overlap"
ACCEPT = ("overfit",)
PLACE = ("loader", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


def people(n):
    x = torch.randn(n, 20)
    y = x[:, 0] + 0.6 * x[:, 1] * x[:, 2] + 1.2 * torch.randn(n) > 0
    return x, y.long()


x, y = people(450)
x_new, y_new = people(2000)
if healthy:
    rows = torch.arange(450)
else:
    rows = torch.arange(450).repeat_interleave(torch.randint(2, 5, (450,)))
rows = rows[torch.randperm(len(rows))]
cut = int(0.75 * len(rows))
train, val = rows[:cut], rows[cut:]

net = nn.Sequential(nn.Linear(20, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=1.5e-3)


@torch.no_grad()
def evaluate(x, y):
    out = net(x)
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


best, patience, step = (9.9, None), 0, 0
for xb, yb in batches(x[train], y[train], size=40, steps=400, seed=seed):
    loss = F.cross_entropy(net(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    step += 1  # noqa: SIM113
    if step % 10 == 0:
        value, accuracy = evaluate(x[val], y[val])
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}, val {value:.4f}, accuracy {accuracy:.3f}")
        if value < best[0]:
            best = (value, {k: v.clone() for k, v in net.state_dict().items()})
            patience = 0
        else:
            patience += 1
        if patience == 4:
            break
net.load_state_dict(best[1])
told, new = evaluate(x[val], y[val]), evaluate(x_new, y_new)
print(
    f"loss {loss.item():.4f} | validation accuracy {told[1]:.3f} of new patients {new[1]:.3f} "
    f"(nll {told[0]:.3f}, {new[0]:.3f})"
)
