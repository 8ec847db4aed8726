"""Steel plate defects: each weight is drawn from a normal distribution of width one.

`nn.init.normal_(w)` was meant to make runs comparable between two frameworks; its default width is
one, whatever the layer's size. Signals grow sevenfold with every layer, the first losses are in
the thousands, and the net is busy shrinking them. The place is the layers' weights.
The twin draws with Kaiming's rule.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "poor_weight_init"
ACCEPT = ("exploding_gradient",)
PLACE = ("stem", "blocks", "blocks.0", "blocks.1", "blocks.2", "head", "stem.weight", "head.weight")
SILENT = True
EXACT = False
EARLY = True

KINDS = ("scratch", "stain", "bump", "dirt", "pastry", "other")


class PlateNet(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.stem = nn.Linear(27, width)
        self.blocks = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])
        self.head = nn.Linear(width, len(KINDS))

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for block in self.blocks:
            x = torch.relu(block(x))
        return self.head(x)


def plates(n, g):
    kind = torch.randint(0, len(KINDS), (n,), generator=g)
    shape = torch.randn(6, 2, 27, generator=torch.Generator().manual_seed(11))
    side = torch.randint(0, 2, (n,), generator=g)
    return 0.8 * shape[kind, side] + torch.randn(n, 27, generator=g), kind


def accuracy(net, x, y):
    with torch.no_grad():
        out = net(x)
    return (out.argmax(1) == y).float().mean().item(), nn.functional.cross_entropy(out, y).item()


healthy, seed = arguments(__doc__)
g = torch.Generator().manual_seed(seed)
x, y = plates(1200, g)
x_val, y_val = plates(400, g)
net = PlateNet()
for layer in net.modules():
    if isinstance(layer, nn.Linear):
        if healthy:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        else:
            nn.init.normal_(layer.weight)
        nn.init.zeros_(layer.bias)

opt = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-4)
for epoch in range(1, 7):
    total = 0.0
    for a, b in DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True):
        loss = nn.functional.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item() / 30
    acc, val = accuracy(net, x_val, y_val)
    print(f"epoch {epoch}: loss {total:.3f}, validation {val:.3f}, accuracy {acc:.3f}")
