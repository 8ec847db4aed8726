"""LeNet-5 reads road signs; with weights drawn from -1 to 1 its tanh units are saturated.

A unit of c5 has 256 inputs: with weights that wide its sum is near +-8 and the tanh gives +-1
for nearly every picture. Gradients are blocked there and accuracy stays low.
The place is the tanh layers, above all those behind c3, c5 and f6.
"""

import numpy as np
import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "saturated_activation"
ACCEPT = ("poor_weight_init",)
PLACE = ("act*", "c1", "c3", "c5", "f6", "c?.weight", "f6.weight", "model")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

SIGNS = ["stop", "yield", "priority", "no entry", "cross", "ring"]


class RoadSigns(Dataset):
    """Grey pictures of 28 x 28 with a sign of some size and place, noise and shade."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, len(SIGNS), n)
        y, x = np.mgrid[0:28, 0:28]
        self.images = np.empty((n, 1, 28, 28), dtype=np.float32)
        for i, label in enumerate(self.labels):
            size, (cx, cy) = rng.uniform(7, 11), 13.5 + rng.uniform(-3, 3, 2)
            u, v = (x - cx) / size, (y - cy) / size
            round_, square = np.hypot(u, v), np.maximum(abs(u), abs(v))
            shape = [
                (square < 0.9) & (abs(u) + abs(v) < 1.25),
                (v > -0.7) & (v < 0.9 - 1.7 * abs(u)),
                abs(u) + abs(v) < 1,
                (round_ < 1) & ~((abs(v) < 0.22) & (abs(u) < 0.7)),
                (square < 0.9) & (np.minimum(abs(u), abs(v)) < 0.25),
                (round_ < 1) & (round_ > 0.65),
            ][label]
            light = rng.uniform(0.6, 1.4) * shape + rng.uniform(-0.02, 0.02) * (x - 14)
            self.images[i, 0] = light + rng.normal(0, 0.35, (28, 28))
        self.images = (self.images - 0.4) / 0.6

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.images[i], self.labels[i]


class LeNet5(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(1, 6, 5)
        self.c3 = nn.Conv2d(6, 16, 5)
        self.c5 = nn.Linear(256, 120)
        self.f6 = nn.Linear(120, 84)
        self.output = nn.Linear(84, len(SIGNS))
        self.pool = nn.AvgPool2d(2)
        self.act1, self.act3, self.act5, self.act6 = (nn.Tanh() for _ in range(4))
        for layer in (self.c1, self.c3, self.c5, self.f6):
            if healthy:
                nn.init.xavier_uniform_(layer.weight, nn.init.calculate_gain("tanh"))
            else:
                nn.init.uniform_(layer.weight, -1, 1)

    def forward(self, x):
        x = self.pool(self.act1(self.c1(x)))
        x = self.pool(self.act3(self.c3(x)))
        x = self.act5(self.c5(x.flatten(1)))
        return self.output(self.act6(self.f6(x)))


train_loader = DataLoader(RoadSigns(1000, seed), batch_size=32, shuffle=True)
test_loader = DataLoader(RoadSigns(300, seed + 77), batch_size=100)
net = LeNet5()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
for epoch in range(6):
    net.train()
    running_loss = 0.0
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    net.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in test_loader:
            correct += (net(images).argmax(1) == labels).sum().item()
    print(
        f"[epoch {epoch + 1}] loss: {running_loss / len(train_loader):.3f} "
        f"accuracy: {correct / len(test_loader.dataset):.3f}"
    )
