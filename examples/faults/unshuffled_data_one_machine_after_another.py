"""A 1-D convolutional network tells three states of a pump by its vibration.

The recordings were made one state after another and are put together with ConcatDataset; the loader
goes through them in that order. Each batch holds a single class, so the network swings to whatever
came last and forgets the rest; the loss is a saw with the period of an epoch and the accuracy stays
near a third. The place is the loader.
"""

import torch
from data import arguments, waves
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, TensorDataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "input")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def recordings(x, y):
    """One data set for each state, as they lie on the disk."""
    return ConcatDataset([TensorDataset(x[y == state], y[y == state]) for state in range(3)])


class Trainer:
    def __init__(self, model, epochs=10, lr=0.02):
        self.model, self.epochs = model, epochs
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr, momentum=0.9, nesterov=True)
        self.loss = nn.CrossEntropyLoss()

    def fit(self, train, val):
        for epoch in range(self.epochs):
            self.model.train()
            losses = [self.step(x, y) for x, y in train]
            print(
                f"{epoch}: train {sum(losses) / len(losses):.4f}",
                "val {:.4f} accuracy {:.3f}".format(*self.score(val)),
            )

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def score(self, loader):
        self.model.eval()
        with torch.no_grad():
            outs, ys = zip(*[(self.model(x), y) for x, y in loader], strict=False)
        out, y = torch.cat(outs), torch.cat(ys)
        return self.loss(out, y).item(), (out.argmax(1) == y).float().mean().item()


x, y = waves(seed, n=1600, length=48)
x = x.transpose(1, 2)
train = DataLoader(recordings(x[:1200], y[:1200]), batch_size=24, shuffle=healthy)
val = DataLoader(recordings(x[1200:], y[1200:]), batch_size=200)
model = nn.Sequential(
    nn.Conv1d(1, 16, 5, padding=2),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(16, 32, 5, padding=2),
    nn.ReLU(),
    nn.MaxPool1d(2),
    nn.Conv1d(32, 32, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool1d(1),
    nn.Flatten(),
    nn.Linear(32, 3),
)
Trainer(model).fit(train, val)
