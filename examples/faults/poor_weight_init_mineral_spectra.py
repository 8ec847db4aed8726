"""Names the mineral from its reflectance spectrum; all weights start with a spread of 1.

A helper starts every linear layer with nn.init.normal_, whose default spread is 1 whatever the
size of the layer. The scores start in the hundreds, the first losses too, and the layers hardly
move from their random start.
The place is the start of the weights of the layers.
The twin starts them by He's rule.
"""

import torch
from data import arguments, batches
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("exploding_gradient",)
PLACE = ("net", "net.0", "net.2", "net.4", "net.6", "output*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)

BANDS, MINERALS = 60, 8


def spectra(n, generator):
    """A sloping background with two absorption bands whose places tell the mineral."""
    mineral = torch.randint(0, MINERALS, (n,), generator=generator)
    wave = torch.linspace(0, 1, BANDS)
    first, second = 0.15 + 0.08 * (mineral % 4), 0.6 + 0.12 * (mineral // 4)
    out = 0.5 + 0.3 * (torch.rand(n, 1, generator=generator) - 0.5)
    out = out + 0.4 * (torch.rand(n, 1, generator=generator) - 0.5) * wave
    for middle in (first, second):
        centre = middle + 0.02 * torch.randn(n, generator=generator)
        depth = 0.08 + 0.2 * torch.rand(n, 1, generator=generator)
        out = out - depth * torch.exp(-(((wave - centre[:, None]) / 0.05) ** 2))
    out = out + 0.03 * torch.randn(n, BANDS, generator=generator)
    return (out - 0.48) / 0.14, mineral


def start(module):
    if isinstance(module, nn.Linear):
        if healthy:
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        else:
            nn.init.normal_(module.weight)
        nn.init.zeros_(module.bias)


class Classifier(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(BANDS, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, MINERALS),
        )  # fmt: skip
        self.apply(start)

    def forward(self, x):
        return self.net(x)


g = torch.Generator().manual_seed(seed)
x, y = spectra(5000, g)
x_val, y_val = spectra(600, g)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
for step, (rows, mineral) in enumerate(batches(x, y, size=64, steps=500, seed=seed), 1):
    loss = nn.functional.cross_entropy(model(rows), mineral)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 1 or step % 100 == 0:
        with torch.no_grad():
            scores = model(x_val)
            error = nn.functional.cross_entropy(scores, y_val).item()
            right = (scores.argmax(1) == y_val).float().mean().item()
        print(f"{step:4d}: loss {loss.item():.3f}, val loss {error:.3f}, accuracy {right:.3f}")
