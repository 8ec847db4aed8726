"""An MLP predicts the viscosity of polymer melts; the weight decay of 0.8 crushes the weights.

The student read that decay helps against overfitting and set it thousands of times too high. The
weights shrink until the network says nearly the mean for all samples. The place is the optimizer.
"""

import math

import torch
from data import arguments, batches, standardise
from torch import nn

KIND = "over_regularized"
ACCEPT = ()
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

g = torch.Generator().manual_seed(100 + seed)
N = 1600
temperature = 420 + 130 * torch.rand(N, generator=g)
log_mass = 4 + 1.8 * torch.rand(N, generator=g)
log_shear = -2 + 5 * torch.rand(N, generator=g)
branching = torch.rand(N, generator=g)
filler = 0.3 * torch.rand(N, generator=g)
zero_shear = 3.4 * (log_mass - 5) + 2600 / temperature - 5.5 + 2.5 * filler
thinning = 0.5 * torch.log10(1 + 10 ** (2 * (zero_shear + log_shear - 2).clamp(max=6))) / 2
viscosity = zero_shear - thinning * (1 - 0.4 * branching) + 0.15 * torch.randn(N, generator=g)
x = torch.stack([temperature, log_mass, log_shear, branching, filler], 1)
x, x_val = standardise(x[:1200], x[1200:])
y, y_val = standardise(viscosity[:1200, None], viscosity[1200:, None])


def build(width=64, depth=3):
    layers, last = [], x.shape[1]
    for _ in range(depth):
        layers += [nn.Linear(last, width), nn.ELU()]
        last = width
    return nn.Sequential(*layers, nn.Linear(last, 1))


def main():
    net = build()
    decay = 1e-4 if healthy else 0.8
    optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, weight_decay=decay)
    criterion = nn.MSELoss()
    running = math.nan
    for step, (xb, yb) in enumerate(batches(x, y, size=48, steps=1000, seed=seed), 1):
        optimizer.zero_grad()
        loss = criterion(net(xb), yb)
        loss.backward()
        optimizer.step()
        running = loss.item() if math.isnan(running) else 0.95 * running + 0.05 * loss.item()
        if step % 200 == 0:
            with torch.no_grad():
                val = criterion(net(x_val), y_val).item()
            print(
                f"step {step} train {running:.4f} val {val:.4f} R2 {1 - val / y_val.var().item():.3f}"  # noqa: E501
            )


main()
