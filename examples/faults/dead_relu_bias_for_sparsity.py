"""A sparse code of sounds by three layers of ReLU, whose biases start so far below zero that most
units never fire.

The author wanted few active units and let the biases start at -2; with standardised inputs most
units then give 0 for every sound, get no gradient, and stay so. The place is the ReLU layers
(layers.*).
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "dead_relu"
ACCEPT = ("poor_weight_init",)
PLACE = ("layers*", "relus*")
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def sounds(n, g):
    """Mel-like spectra of 40 bands of eight vowels by voices of all kinds, and the vowel."""
    y = torch.randint(0, 8, (n,), generator=g)
    formant = torch.tensor(
        [[8, 24], [11, 22], [15, 20], [17, 26], [14, 30], [10, 32], [7, 14], [12, 16]]
    ).float()
    centre = formant[y] * (1 + 0.05 * torch.randn(n, 1, generator=g)) + 0.6 * torch.randn(
        n, 2, generator=g
    )
    bands = torch.arange(40.0)
    peaks = torch.exp(-((bands - centre[:, :, None]) ** 2) / 8) * (
        0.7 + 0.6 * torch.rand(n, 2, 1, generator=g)
    )
    pitch = 0.3 * torch.cos(
        bands * (1 + torch.rand(n, 1, generator=g)) + 6.28 * torch.rand(n, 1, generator=g)
    )
    return peaks.sum(1) + pitch + 0.3 * torch.randn(n, 40, generator=g), y


class SparseCode(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(40, width), nn.Linear(width, width), nn.Linear(width, width)]
        )
        self.relus = nn.ModuleList(nn.ReLU() for _ in self.layers)
        self.vowel = nn.Linear(width, 8)
        for layer in self.layers:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.constant_(layer.bias, 0.0 if healthy else -2.0)

    def forward(self, x):
        for layer, relu in zip(self.layers, self.relus, strict=True):
            x = relu(layer(x))
        return self.vowel(x)


g = torch.Generator().manual_seed(seed)
x, y = sounds(4000, g)
x_val, y_val = sounds(600, g)
x_val, x = (x_val - x.mean(0)) / x.std(0), (x - x.mean(0)) / x.std(0)
model = SparseCode()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=1e-4)
steps, step = 700, 0
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.02, total_steps=steps)
while step < steps:
    for rows in torch.randperm(len(x), generator=g).split(50):
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step < steps - 1:
            schedule.step()
        step += 1
        if step % 70 == 0:
            model.eval()
            with torch.no_grad():
                logits = model(x_val)
                hit = (logits.argmax(1) == y_val).float().mean().item()
            model.train()
            val = F.cross_entropy(logits, y_val).item()
            print(f"step {step} loss {loss.item():.4f} val {val:.3f} accuracy {hit:.3f}")
        if step == steps:
            break
