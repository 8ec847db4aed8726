"""A LeNet for digits trains with CutMix: its training loss stays high and its training accuracy far
below the accuracy on validation pictures.

Half of the batches have a rectangle of another picture in them and a loss with two labels, so no
answer is fully right there. Validation pictures are whole. The order is as it should be.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ODD = "training accuracy stays far below validation accuracy: pictures with patches of others"
_, seed = arguments(__doc__)


def cutmix(pictures, labels):
    """Pastes one rectangle of a shuffled batch; gives both labels and the first one's share."""
    partner = torch.randperm(len(pictures))
    side = (1 - torch.distributions.Beta(1.0, 1.0).sample()).sqrt()
    height = width = int(8 * side)
    top = int(torch.randint(0, 8 - height + 1, (1,)))
    left = int(torch.randint(0, 8 - width + 1, (1,)))
    mixed = pictures.clone()
    box = (slice(None), slice(None), slice(top, top + height), slice(left, left + width))
    mixed[box] = pictures[partner][box]
    return mixed, labels, labels[partner], 1 - height * width / 64


class SmallLeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc1 = nn.Linear(24 * 4, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


def validate(model, loader):
    model.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for pictures, labels in loader:
            scores = model(pictures)
            loss += F.cross_entropy(scores, labels, reduction="sum").item()
            right += (scores.argmax(1) == labels).sum().item()
    return loss / len(loader.dataset), right / len(loader.dataset)


def main():
    x, y, x_val, y_val = images(seed)
    train_loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=225)
    model = SmallLeNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, 13):
        model.train()
        running_loss, running_right = 0.0, 0.0
        for whole, labels in train_loader:
            if torch.rand(1) < 0.5:
                pictures, first, second, share = cutmix(whole, labels)
            else:
                pictures, first, second, share = whole, labels, labels, 1.0
            scores = model(pictures)
            loss = share * F.cross_entropy(scores, first)
            loss = loss + (1 - share) * F.cross_entropy(scores, second)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * len(labels)
            running_right += (scores.argmax(1) == first).sum().item()
        val_loss, val_accuracy = validate(model, val_loader)
        print(
            f"epoch {epoch:2d}  train {running_loss / len(x):.3f} {running_right / len(x):.3f}  "
            f"val {val_loss:.3f} {val_accuracy:.3f}"
        )


main()
