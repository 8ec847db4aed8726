"""A tanh network names gases by an array of sensors; its weights are drawn with deviation 1, so
tanh saturates.

The class sets its weights by hand with `normal_(0, 1)`, whatever the number of inputs: the sums
are large, most tanh units stand at -1 or 1 from the first step on, and hardly any gradient
passes. The place is the hidden layers and their tanh.
"""

import itertools

import torch
from data import arguments, batches, standardise
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = ("hidden*", "layers*", "tanh*", "act*")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SENSORS, GASES = 32, 6
g = torch.Generator().manual_seed(160 + seed)
affinity = torch.randn(GASES, SENSORS, generator=g).abs()
drift = torch.randn(3, SENSORS, generator=g)


def measure(n):
    gas = torch.randint(0, GASES, (n,), generator=g)
    dose = 0.3 + 1.7 * torch.rand(n, 1, generator=g)
    interferent = torch.rand(n, GASES, generator=g) * 0.35
    signal = dose * affinity[gas] + interferent @ affinity
    signal = signal / (1 + 0.3 * signal) + 0.25 * torch.randn(n, 3, generator=g) @ drift
    return signal + 0.2 * torch.randn(n, SENSORS, generator=g), gas


class Nose(nn.Module):
    def __init__(self, width=64, depth=3):
        super().__init__()
        sizes = [SENSORS] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.act = nn.Tanh()
        self.out = nn.Linear(width, GASES)
        for layer in self.layers:
            nn.init.normal_(layer.weight, 0.0, layer.in_features**-0.5 if healthy else 1.0)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        for layer in self.layers:
            x = self.act(layer(x))
        return self.out(x)


x, y = measure(3000)
x_val, y_val = measure(600)
x, x_val = standardise(x, x_val)
nose = Nose()
optimizer = torch.optim.SGD(nose.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-3)
for step, (xb, yb) in enumerate(batches(x, y, size=50, steps=500, seed=seed), 1):
    loss = nn.functional.cross_entropy(nose(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        with torch.no_grad():
            out = nose(x_val)
        val = nn.functional.cross_entropy(out, y_val).item()
        print(
            f"step {step} loss {loss.item():.3f} val {val:.3f} accuracy {(out.argmax(1) == y_val).float().mean():.3f}"  # noqa: E501
        )
