"""A small CNN tells four drawn shapes apart, with an Adam rate of 0.1.

The rate was taken over from a recipe for plain SGD. The steps are a hundred times too large for
Adam, the loss shoots up at once and then stays near ln 4. The place is the optimizer.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "learning_rate_too_high"
ACCEPT = ("dead_relu",)
PLACE = ("optimizer",)
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


def draw(n, size=16):
    """Discs, rings, squares and crosses of any place and size, with noise."""
    rows, columns = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    kind = torch.randint(0, 4, (n,))
    pictures = torch.zeros(n, 1, size, size)
    for i in range(n):
        radius = 3 + 2.5 * torch.rand(1)
        dy = rows - (radius + (size - 2 * radius) * torch.rand(1))
        dx = columns - (radius + (size - 2 * radius) * torch.rand(1))
        far = (dy**2 + dx**2).sqrt()
        box = torch.maximum(dy.abs(), dx.abs())
        inside = (
            far < radius,
            (far < radius) & (far > radius - 1.8),
            box < radius * 0.85,
            (box < radius) & (torch.minimum(dy.abs(), dx.abs()) < 1.1),
        )[kind[i]]
        pictures[i, 0] = inside.float()
    pictures += 0.35 * torch.randn_like(pictures)
    return (pictures - 0.2) / 0.5, kind


class Trainer:
    def __init__(self, model, rate):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        self.criterion = nn.CrossEntropyLoss()

    def fit(self, train, val, epochs):
        for epoch in range(epochs):
            self.model.train()
            total = 0.0
            for x, y in train:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
                total += loss.item()
            accuracy = self.evaluate(val)
            print(f"epoch {epoch} loss {total / len(train):.4f} val accuracy {accuracy:.3f}")

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        right = sum((self.model(x).argmax(1) == y).sum().item() for x, y in loader)
        return right / len(loader.dataset)


x, y = draw(2500)
train = DataLoader(TensorDataset(x[:2000], y[:2000]), batch_size=40, shuffle=True)
val = DataLoader(TensorDataset(x[2000:], y[2000:]), batch_size=250)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(24 * 16, 48),
    nn.ReLU(),
    nn.Linear(48, 4),
)
Trainer(model, 0.002 if healthy else 0.1).fit(train, val, epochs=14)
