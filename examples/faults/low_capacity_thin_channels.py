"""A small MobileNet-like net for digits with one or two channels per stage.

The person wanted the smallest model of a family made for large pictures and set the multiplier to
0.05; the stages of this net have 16 to 48 channels, of which one, one and two are left. It
underfits, on training data too. The place is the model, in scaled().
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "low_capacity"
ACCEPT = ()
PLACE = ("model", "stages*", "head*")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

WIDTH_MULTIPLIER = 1.0 if healthy else 0.05
STAGES = ((16, 1), (32, 2), (48, 2))


def scaled(channels):
    return max(1, int(channels * WIDTH_MULTIPLIER))


class Separable(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.depthwise = nn.Conv2d(before, before, 3, stride, 1, groups=before, bias=False)
        self.pointwise = nn.Conv2d(before, after, 1, bias=False)
        self.norm = nn.BatchNorm2d(after)

    def forward(self, x):
        return torch.relu(self.norm(self.pointwise(self.depthwise(x))))


class TinyNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        channels = scaled(STAGES[0][0])
        stages = [nn.Conv2d(1, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.ReLU()]
        for width, stride in STAGES:
            stages.append(Separable(channels, scaled(width), stride))
            channels = scaled(width)
        self.stages = nn.Sequential(*stages)
        self.head = nn.Linear(channels * 4, classes)

    def forward(self, x):
        return self.head(self.stages(x).flatten(1))


class Meter:
    def __init__(self):
        self.loss = self.right = self.count = 0.0

    def add(self, loss, logits, target):
        self.loss += loss.item() * len(target)
        self.right += (logits.argmax(1) == target).sum().item()
        self.count += len(target)

    def __str__(self):
        return f"loss {self.loss / self.count:.3f} acc {self.right / self.count:.3f}"


def run_epoch(model, loader, criterion, optimizer=None, scheduler=None):
    model.train(optimizer is not None)
    meter = Meter()
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            logits = model(x)
            loss = criterion(logits, y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                scheduler.step()
            meter.add(loss, logits, y)
    return meter


def main():
    x, y, x_val, y_val = images(seed)
    loader = DataLoader(TensorDataset(x, y), batch_size=48, shuffle=True, drop_last=True)
    val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=256)
    model = TinyNet()
    print(sum(p.numel() for p in model.parameters()), "parameters")
    epochs = 22
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(loader))
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        trained = run_epoch(model, loader, criterion, optimizer, scheduler)
        validated = run_epoch(model, val_loader, criterion)
        if epoch % 3 == 0 or epoch == epochs - 1:
            print(f"{epoch:3d} train {trained} | val {validated}")


main()
