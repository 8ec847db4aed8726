"""Quality of milk from near-infrared spectra: all weights start as normal numbers of width 1.

`init.normal_(w)` was taken for a sensible way to start, as it was in a lecture on a net with two
inputs. With 128 inputs to a layer, each layer makes its values eleven times larger, and the first
outputs are in the thousands.
The place is the layers' weights. The twin scales the width by the number of inputs.
"""

import torch
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("exploding_gradient",)
PLACE = ("layers", "layers.0", "layers.2", "layers.4", "layers.6")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def init_weights(module):
    if isinstance(module, nn.Linear):
        if healthy:
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        else:
            nn.init.normal_(module.weight)
        nn.init.zeros_(module.bias)


class MilkNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(40, 128),
            nn.ReLU(),
            nn.Linear(128, 128),
            nn.ReLU(),
            nn.Linear(128, 64),
            nn.ReLU(),
            nn.Linear(64, 3),
        )
        self.apply(init_weights)

    def forward(self, x):
        return self.layers(x)


bands = torch.linspace(0, 1, 40)


def milk(n):
    fat, protein = torch.randn(n, 1), torch.randn(n, 1)
    spectrum = fat * torch.exp(-((bands - 0.3) ** 2) / 0.01)
    spectrum = spectrum + protein * torch.exp(-((bands - 0.6) ** 2) / 0.02)
    spectrum = spectrum + 0.3 * torch.randn(n, 40)
    score = fat + protein + 0.4 * fat * protein
    grade = (score > -0.6).long() + (score > 0.6).long()
    return spectrum, grade.squeeze(1)


x, y = milk(1200)
x_val, y_val = milk(600)
x, x_val = (x - x.mean(0)) / x.std(0), (x_val - x.mean(0)) / x.std(0)
model = MilkNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-4)
for epoch in range(12):
    for rows in torch.randperm(len(x)).split(50):
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        out = model(x_val)
        val = nn.functional.cross_entropy(out, y_val).item()
        right = (out.argmax(1) == y_val).float().mean().item()
    print(f"epoch {epoch} train {loss.item():.4f} val {val:.4f} accuracy {right:.3f}")
