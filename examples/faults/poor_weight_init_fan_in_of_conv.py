"""Faults of a bearing from vibration: the initialiser takes the kernel's size for the fan-in.

`init_weights` draws with variance 2 / fan_in, but takes for the fan-in the kernel size alone, as
in a network of one channel. From the second convolution on each layer blows the signal up by the
root of 24 and the logits start in the hundreds. The place is the weights of the convolutions. The
twin counts the input channels too.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "poor_weight_init"
ACCEPT = ("exploding_gradient",)
PLACE = (
    "body.0.weight",
    "body.2.weight",
    "body.4.weight",
    "body.6.weight",
    "body.8.weight",
    "body.0",
    "body.2",
    "body.4",
    "body.6",
    "body.8",
    "body",
)
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def vibration(n, rng, length=128):
    kind = rng.integers(0, 4, n)
    t = np.arange(length)
    rows = []
    for k in kind:
        hum = np.sin(2 * np.pi * (t / 32 + rng.random()))
        period = {0: 0, 1: 11, 2: 17, 3: 23}[k]
        hits = np.zeros(length)
        if period:
            hits[rng.integers(0, period) :: period] = 2.0
        ring = np.convolve(hits, np.exp(-np.arange(12) / 2.5) * np.cos(1.9 * np.arange(12)))[
            :length
        ]
        rows.append(hum + ring + rng.normal(0, 0.5, length))
    return np.array(rows, dtype=np.float32)[:, None], kind


class Net(nn.Module):
    def __init__(self, width=24, classes=4):
        super().__init__()
        layers, channels = [], 1
        for stride in (1, 2, 2, 2, 2):
            layers += [nn.Conv1d(channels, width, 7, stride=stride, padding=3), nn.ReLU()]
            channels = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, classes)
        self.apply(init_weights)

    def forward(self, x):
        return self.head(self.body(x).mean(2))


def init_weights(m):
    if isinstance(m, nn.Conv1d):
        fan_in = m.in_channels * m.kernel_size[0] if healthy else m.kernel_size[0]
        std = (2 / fan_in) ** 0.5
        nn.init.normal_(m.weight, 0, std)
        nn.init.zeros_(m.bias)


x, y = vibration(1600, np.random.default_rng(seed))
data = TensorDataset(torch.tensor(x), torch.tensor(y))
train_set, val_set = random_split(data, [1200, 400])
train = DataLoader(train_set, batch_size=50, shuffle=True)
val = DataLoader(val_set, batch_size=200)

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(15):
    model.train()
    total = 0.0
    for signal, kind in train:
        loss = nn.functional.cross_entropy(model(signal), kind)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item() / len(train)
    model.eval()
    with torch.no_grad():
        hits = sum((model(s).argmax(1) == k).sum().item() for s, k in val)
    print(f"epoch {epoch:2d}  loss {total:9.3f}  val accuracy {hits / len(val_set):.3f}")
