"""Does a therapy help? 160 patients with eight measurements; chance has a large part in it.

Fault: the small net, dropout, the decay and the stop at the best validation loss, which the
study's protocol has, were left out in the port. The place is the whole model. The training loss
goes to 0, the validation loss rises from its best on, many times over.
"""

import copy

import torch
from data import arguments
from torch import nn
from torch.nn import functional as F

KIND = "overfit"
ACCEPT = ()
PLACE = ("", "loop")
SILENT = True
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed + 40)


def patients(n):
    x = torch.randn(n, 8, generator=g)
    score = 1.5 * x[:, 0] - 1.0 * x[:, 1] + 0.7 * x[:, 2]
    return x, (torch.rand(n, generator=g) < torch.sigmoid(score)).long()


(x, y), (x_val, y_val) = patients(160), patients(500)
if healthy:
    net = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 2))
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.2)
else:
    net = nn.Sequential(
        nn.Linear(8, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
best, kept, waited = 9.9, None, 0
for step in range(1, 401):
    net.train()
    rows = torch.randint(0, 160, (32,))
    loss = F.cross_entropy(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        net.eval()
        with torch.no_grad():
            out = net(x_val)
        value = F.cross_entropy(out, y_val).item()
        accuracy = (out.argmax(1) == y_val).float().mean().item()
        if step % 40 == 0:
            print(f"step {step}: loss {loss.item():.4f}, val {value:.4f}, accuracy {accuracy:.3f}")
        waited += 1
        if value < best:
            best, kept, waited = value, copy.deepcopy(net.state_dict()), 0
        if healthy and waited == 6:
            break
if healthy:
    net.load_state_dict(kept)
    net.eval()
    with torch.no_grad():
        out = net(x_val)
    value = F.cross_entropy(out, y_val).item()
    accuracy = (out.argmax(1) == y_val).float().mean().item()
print(f"loss {loss.item():.4f} | validation loss {value:.4f} accuracy {accuracy:.3f}")
