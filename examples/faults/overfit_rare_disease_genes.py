"""A rare disease from gene activity: a hundred patients, 400 genes, a wide net trained to the end.

Three layers of 256 for a hundred rows, no weight decay, no dropout, and 100 rounds because the loss
went on falling. It learns the patients by heart; on others it gets worse while it does. The place
is the loop (too long) and the input (too few rows).
The twin chooses strong weight decay, dropout, a narrow net, and stops when validation does.
"""

import copy
import itertools

import torch
from data import arguments
from torch import nn

KIND = "overfit"
ACCEPT = ()
PLACE = ("loop", "input*", "optimizer")
SILENT = True
EXACT = False
EARLY = False


def patients(n, g):
    ill = torch.randint(0, 2, (n,), generator=g)
    path = torch.randn(n, 5, generator=g)
    load = torch.randn(5, 400, generator=torch.Generator().manual_seed(8))
    genes = 0.4 * path @ load + 1.5 * torch.randn(n, 400, generator=g)
    genes[:, :25] += 1.0 * (2 * ill[:, None] - 1)
    # one diagnosis in eight is made on symptoms alone, and mistaken
    mistaken = torch.rand(n, generator=g) < 1 / 8
    return genes / 2, torch.where(mistaken, 1 - ill, ill).float()


def wide():
    sizes = [400, 256, 256, 256]
    layers = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(256, 1), nn.Flatten(0))


def narrow():
    layers = [nn.Dropout(0.5), nn.Linear(400, 8), nn.ReLU(), nn.Linear(8, 1), nn.Flatten(0)]
    return nn.Sequential(*layers)


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
x, y = patients(100, g)
x_val, y_val = patients(200, g)
bce = nn.BCEWithLogitsLoss()

net = narrow() if healthy else wide()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=4.0 if healthy else 0.0)
best, kept, waited = float("inf"), None, 0
for epoch in range(100):
    net.train()
    for idx in torch.randperm(100, generator=g).split(20):
        loss = bce(net(x[idx]), y[idx])
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        out = net(x_val)
        val = bce(out, y_val).item()
        hit = ((out > 0) == y_val.bool()).float().mean().item()
    if epoch % 10 == 0:
        print(f"{epoch:3d} train {loss.item():.4f} val {val:.4f} correct {hit:.3f}")
    if healthy:
        waited += 1
        if val < best - 1e-3:
            best, waited, kept = val, 0, copy.deepcopy(net.state_dict())
        if waited == 15:
            net.load_state_dict(kept)
            break
with torch.no_grad():
    net.eval()
    out = net(x_val)
print(f"final val {bce(out, y_val):.4f} correct {((out > 0) == y_val.bool()).float().mean():.3f}")
