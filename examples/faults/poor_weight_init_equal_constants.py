"""Reads digits with three dense layers, all of whose weights start at the same number, 0.02.

One constant is an easy way to begin from equal weights in two frameworks. All units of a layer get
the same gradient and remain copies of each other, so that the network has one unit per hidden
layer. The place is the weights of the hidden layers.
"""

import itertools

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset

KIND = "poor_weight_init"
ACCEPT = ("low_capacity", "representation_collapse")
PLACE = ("layers.*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class Digits(Dataset):
    def __init__(self, pixels, labels):
        self.pixels = pixels.astype(np.float32)
        self.labels = labels.astype(np.int64)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.pixels[index], self.labels[index]


class Net(torch.nn.Module):
    def __init__(self, sizes=(64, 96, 48, 10)):
        super().__init__()
        pairs = itertools.pairwise(sizes)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(a, b) for a, b in pairs)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.tanh(layer(x))
        return self.layers[-1](x)


def initialise(module):
    if isinstance(module, torch.nn.Linear):
        if healthy:
            torch.nn.init.xavier_uniform_(module.weight)
        else:
            torch.nn.init.constant_(module.weight, 0.02)
        torch.nn.init.zeros_(module.bias)


def run_epoch(net, loader, criterion, optimizer=None):
    net.train(optimizer is not None)
    total, right, seen = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for pixels, labels in loader:
            outputs = net(pixels)
            loss = criterion(outputs, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(labels)
            right += (outputs.argmax(1) == labels).sum().item()
            seen += len(labels)
    return total / seen, right / seen


def main():
    bunch = load_digits()
    x, x_test, y, y_test = train_test_split(
        bunch.data, bunch.target, test_size=0.25, stratify=bunch.target, random_state=seed
    )
    mean, std = x.mean(), x.std()
    train = DataLoader(Digits((x - mean) / std, y), batch_size=64, shuffle=True)
    test = DataLoader(Digits((x_test - mean) / std, y_test), batch_size=256)

    net = Net()
    net.apply(initialise)
    criterion = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3)
    for epoch in range(25):
        loss, accuracy = run_epoch(net, train, criterion, optimizer)
        test_loss, test_accuracy = run_epoch(net, test, criterion)
        print(
            f"[{epoch + 1:02d}/25] loss {loss:.3f} acc {accuracy:.3f} | "
            f"test loss {test_loss:.3f} acc {test_accuracy:.3f}"
        )


main()
