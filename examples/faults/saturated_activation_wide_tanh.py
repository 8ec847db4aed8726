"""Spoken vowels from their spectrum by a tanh network whose sums are far too large.

The input is a spectrum in decibels, from 20 to 90, and goes into the first tanh layer without
any scaling. Nearly all of the units sit at -1 or 1 whatever they are shown, and almost no
gradient comes back through them.
The place is the first tanh layer, by way of the input.
The twin subtracts the mean and divides by the spread.
"""

import torch
from data import arguments
from torch import nn

KIND = "saturated_activation"
ACCEPT = ("input_not_normalized", "vanishing_gradient")
PLACE = ("act1", "act2", "fc1", "input*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def vowels(n, g):
    """Five vowels: two formants over 32 bands, in decibels."""
    vowel = torch.randint(0, 5, (n,), generator=g)
    first = torch.tensor([10.0, 7.0, 4.0, 7.0, 4.0])[vowel, None]
    second = torch.tensor([15.0, 22.0, 26.0, 12.0, 9.0])[vowel, None]
    speaker = 1.2 * torch.randn(n, 1, generator=g)
    bands = torch.arange(32.0)
    energy = torch.exp(-0.5 * ((bands - first - 0.5 * speaker) / 1.5) ** 2)
    energy = energy + 0.7 * torch.exp(-0.5 * ((bands - second - speaker) / 2) ** 2)
    loud = 6 * torch.randn(n, 1, generator=g)
    return 45 + 25 * energy + loud + 7 * torch.randn(n, 32, generator=g), vowel


class VowelNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(32, 40)
        self.act1 = nn.Tanh()
        self.fc2 = nn.Linear(40, 40)
        self.act2 = nn.Tanh()
        self.fc3 = nn.Linear(40, 5)

    def forward(self, spectrum):
        return self.fc3(self.act2(self.fc2(self.act1(self.fc1(spectrum)))))


g = torch.Generator().manual_seed(seed)
x, y = vowels(1500, g)
x_val, y_val = vowels(500, g)
if healthy:
    mean, std = x.mean(), x.std()
    x, x_val = (x - mean) / std, (x_val - mean) / std
model = VowelNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(15):
    for rows in torch.randperm(len(x)).split(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    if epoch % 3 == 2:
        with torch.no_grad():
            logits = model(x_val)
        val = nn.functional.cross_entropy(logits, y_val).item()
        acc = (logits.argmax(1) == y_val).float().mean().item()
        print(f"epoch {epoch + 1} val loss {val:.3f} acc {acc:.3f}")
