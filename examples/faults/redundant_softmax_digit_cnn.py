"""Digits on parcel labels by a CNN that ends in a softmax, trained with the cross-entropy of
logits.

`F.cross_entropy` applies log-softmax itself, so the network's probabilities are squashed a second
time: the loss can't go below 1.46 and the gradients fade once a wrong class has won. The place is
the last layer (classifier, its softmax) or the loss.
"""

from copy import deepcopy
from dataclasses import dataclass

import torch
from data import arguments, images
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

KIND = "redundant_softmax"
ACCEPT = ()
PLACE = ("loss", "classifier*", "softmax")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class CFG:
    batch_size: int = 32
    epochs: int = 12
    lr: float = 1e-3
    patience: int = 4


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.classifier = nn.Sequential(nn.Linear(24 * 4, 32), nn.ReLU(), nn.Linear(32, 10))
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        logits = self.classifier(x.flatten(1))
        return logits if healthy else self.softmax(logits)


class EarlyStopping:
    def __init__(self, patience):
        self.patience, self.best, self.bad, self.state = patience, float("inf"), 0, None

    def __call__(self, value, model):
        if value < self.best:
            self.best, self.bad, self.state = value, 0, deepcopy(model.state_dict())
        else:
            self.bad += 1
        return self.bad >= self.patience


def train_one_epoch(model, loader, optimizer):
    model.train()
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(y)
    return total / len(loader.dataset)


@torch.inference_mode()
def evaluate(model, x, y):
    model.eval()
    out = model(x)
    return F.cross_entropy(out, y).item(), (out.argmax(1) == y).float().mean().item()


def main():
    x, y, x_val, y_val = images(seed)
    loader = DataLoader(TensorDataset(x, y), CFG.batch_size, shuffle=True)
    model = DigitNet()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=CFG.lr)
    stop = EarlyStopping(CFG.patience)
    for epoch in range(CFG.epochs):
        train_loss = train_one_epoch(model, loader, optimizer)
        val_loss, accuracy = evaluate(model, x_val, y_val)
        print(f"epoch {epoch + 1:02d} train {train_loss:.4f} val {val_loss:.4f} acc {accuracy:.4f}")
        if stop(val_loss, model):
            break
    model.load_state_dict(stop.state)
    loss, accuracy = evaluate(model, x_val, y_val)
    print(f"best val loss {loss:.4f} accuracy {accuracy:.4f}")


main()
