"""Earthquake, quarry blast or noise, from a short seismogram: weights drawn much too large.

`init_weights` draws all weights from a normal distribution of deviation 1, as in an old recipe
for tiny networks. With a hundred inputs to a unit each layer then makes its numbers ten times
larger; the first losses are in the thousands and what follows is a long way back. The place is
the weights of the convolutions and of the linear layers at the start. The twin draws them by He's
rule.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn

KIND = "poor_weight_init"
ACCEPT = ("exploding_gradient",)
PLACE = ("stem", "block1", "block2", "fc1", "fc2", "model", "init")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


@dataclass
class Args:
    length: int = 96
    channels: int = 16
    batch: int = 32
    steps: int = 300
    lr: float = 1e-3


def seismograms(n, length, generator):
    label = torch.randint(0, 3, (n,), generator=generator)
    t = torch.arange(length).float()
    onset = 15 + 30 * torch.rand(n, 1, generator=generator)
    since = (t - onset).clamp(min=0)
    begun = (t >= onset).float()
    phase = 6.28 * torch.rand(n, 1, generator=generator)
    rate = 0.55 + 0.2 * torch.rand(n, 1, generator=generator)
    lag = 12 + 10 * torch.rand(n, 1, generator=generator)
    later = (t >= onset + lag).float()
    p_wave = begun * torch.exp(-since / 10) * torch.sin(rate * 2 * since + phase)
    s_wave = later * torch.exp(-(since - lag) / 18) * torch.sin(rate * since + phase)
    surface = begun * torch.exp(-since / 30) * torch.sin(0.3 * since + phase)
    quake = 0.8 * p_wave + 1.8 * s_wave
    blast = 1.8 * p_wave + 0.9 * surface
    signal = torch.stack([quake, blast, torch.zeros_like(quake)])[label, torch.arange(n)]
    trace = signal + 0.45 * torch.randn(n, length, generator=generator)
    trace = (trace - trace.mean(1, keepdim=True)) / trace.std(1, keepdim=True)
    return trace.unsqueeze(1), label


def init_weights(module):
    if isinstance(module, (nn.Conv1d, nn.Linear)):
        if healthy:
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        else:
            nn.init.normal_(module.weight, mean=0.0, std=1.0)
        nn.init.zeros_(module.bias)


class Picker(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.stem = nn.Conv1d(1, c, 7, stride=2, padding=3)
        self.block1 = nn.Conv1d(c, 2 * c, 5, stride=2, padding=2)
        self.block2 = nn.Conv1d(2 * c, 4 * c, 5, stride=2, padding=2)
        self.fc1 = nn.Linear(4 * c, 64)
        self.fc2 = nn.Linear(64, 3)
        self.apply(init_weights)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(self.block1(x))
        x = F.relu(self.block2(x)).mean(-1)
        return self.fc2(F.relu(self.fc1(x)))


def test(model, x, y):
    model.eval()
    with torch.no_grad():
        out = model(x)
    model.train()
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def main():
    args = Args()
    g = torch.Generator().manual_seed(31 + seed)
    x, y = seismograms(1500, args.length, g)
    x_val, y_val = seismograms(500, args.length, g)
    model = Picker(args.channels)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for step in range(1, args.steps + 1):
        rows = torch.randint(0, len(x), (args.batch,))
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0 or step == 1:
            val_loss, right = test(model, x_val, y_val)
            print(f"step {step:4d} loss {loss.item():9.3f} val {val_loss:9.3f} right {right:.3f}")


main()
