"""Highway layers, whose gates begin nearly shut, on two rings within each other and noise
columns.

Fault: the bias of the gates is -20 (a typing error for -2): the sigmoids are 0 to the last digit
and learn nothing; what is left is a linear model. The place is the gates. The loss stays at ln 2.
"""

import torch
from data import arguments, batches
from torch import nn
from torch.nn import functional as F

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init", "vanishing_gradient")
PLACE = ("gate*", "*gate*", "layers*", "*sigmoid*")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
GATE_BIAS = -2.0 if healthy else -20.0


class Highway(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)
        self.gate = nn.Linear(width, width)
        self.sigmoid = nn.Sigmoid()
        nn.init.constant_(self.gate.bias, GATE_BIAS)

    def forward(self, x):
        t = self.sigmoid(self.gate(x))
        return t * F.relu(self.lin(x)) + (1 - t) * x


class Net(nn.Module):
    def __init__(self, width=24, depth=4):
        super().__init__()
        self.into = nn.Linear(6, width)
        self.layers = nn.ModuleList(Highway(width) for _ in range(depth))
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        h = self.into(x)
        for layer in self.layers:
            h = layer(h)
        return self.out(h)


def rings(n):
    y = torch.randint(0, 2, (n,))
    angle = torch.rand(n) * 6.2832
    far = 0.7 + 0.8 * y + 0.15 * torch.randn(n)
    plane = torch.stack([far * angle.cos(), far * angle.sin()], 1)
    return torch.cat([plane, 0.5 * torch.randn(n, 4)], 1), y


(x, y), (x_val, y_val) = rings(1500), rings(500)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=4e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=64, steps=350, seed=seed), 1):
    loss = F.cross_entropy(net(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 70 == 0:
        with torch.no_grad():
            accuracy = (net(x_val).argmax(1) == y_val).float().mean().item()
        print(f"step {step}: loss {loss.item():.4f}, validation accuracy {accuracy:.3f}")
print(f"loss {loss.item():.4f} | validation accuracy {accuracy:.3f}")
