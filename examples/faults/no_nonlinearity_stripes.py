"""Tells the direction of stripes in small pictures; the conv block makes a ReLU in __init__ but
never calls it.

The person's basic block has a convolution, a batch norm and a ReLU, and its forward only the
first two, so that the whole network with its average pooling is one linear map. Stripes of any
phase have a mean picture of zero, from which such a map learns nothing. The place is the conv
blocks of the model.
"""

import math

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

KIND = "no_nonlinearity"
ACCEPT = ()
PLACE = ("model", "block*", "features*")
SILENT = False
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)

DIRECTIONS = 4
SIZE = 16


def pictures(count):
    label = torch.randint(0, DIRECTIONS, (count,))
    angle = label * math.pi / DIRECTIONS + 0.12 * torch.randn(count)
    wave = 1.2 + 0.8 * torch.rand(count)
    phase = 2 * math.pi * torch.rand(count)
    axis = torch.arange(SIZE, dtype=torch.float32)
    along = axis.view(1, 1, -1) * angle.cos().view(-1, 1, 1)
    across = axis.view(1, -1, 1) * angle.sin().view(-1, 1, 1)
    stripes = torch.sin(wave.view(-1, 1, 1) * (along + across) + phase.view(-1, 1, 1))
    return (stripes + 0.5 * torch.randn(count, SIZE, SIZE)).unsqueeze(1), label


class BasicConv2d(nn.Module):
    def __init__(self, channels_in, channels, kernel, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels, kernel, stride, kernel // 2, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.conv(x)
        x = self.bn(x)
        if healthy:
            x = self.relu(x)
        return x


class StripeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.block1 = BasicConv2d(1, 12, 5)
        self.block2 = BasicConv2d(12, 24, 3, stride=2)
        self.block3 = BasicConv2d(24, 24, 3, stride=2)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(24, DIRECTIONS)

    def forward(self, x):
        x = self.block3(self.block2(self.block1(x)))
        return self.classifier(self.pool(x).flatten(1))


def run_epoch(model, loader, criterion, optimizer=None):
    model.train(optimizer is not None)
    loss_sum, hits, seen = 0.0, 0, 0
    with torch.set_grad_enabled(optimizer is not None):
        for images, labels in loader:
            output = model(images)
            loss = criterion(output, labels)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            loss_sum += loss.item() * len(labels)
            hits += (output.argmax(1) == labels).sum().item()
            seen += len(labels)
    return loss_sum / seen, hits / seen


def main():
    data = TensorDataset(*pictures(1600))
    train_set, val_set = random_split(data, [1200, 400])
    train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=200)
    model = StripeNet()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(7):
        loss, acc = run_epoch(model, train_loader, criterion, optimizer)
        val_loss, val_acc = run_epoch(model, val_loader, criterion)
        print(
            f"Epoch {epoch}: loss={loss:.3f} acc={acc:.3f}"
            f" val_loss={val_loss:.3f} val_acc={val_acc:.3f}"
        )


if __name__ == "__main__":
    main()
