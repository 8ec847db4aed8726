"""A small ResNet reads handwritten digits; every convolution is filled with the same number 0.01.

All filters of a layer start alike, get the same gradients and remain copies of each other, so the
network works as if it had one channel per layer.
The place is the weights of the convolutions (stem, block1, block2).
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "poor_weight_init"
ACCEPT = ()
PLACE = ("stem", "stem.*", "block?", "block?.*", "model")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


class DigitImages(Dataset):
    def __init__(self, pixels, labels):
        self.images = torch.tensor(pixels / 16.0, dtype=torch.float32).view(-1, 1, 8, 8)
        self.labels = torch.tensor(labels)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return (self.images[index] - 0.305) / 0.376, self.labels[index]


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x):
        out = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(out)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, classes=10):
        super().__init__()
        self.stem = nn.Conv2d(1, 12, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(12)
        self.block1 = BasicBlock(12, 12, 1)
        self.block2 = BasicBlock(12, 24, 2)
        self.fc = nn.Linear(24, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                if healthy:
                    nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
                else:
                    nn.init.constant_(m.weight, 0.01)

    def forward(self, x):
        x = F.relu(self.bn(self.stem(x)))
        x = self.block2(self.block1(x))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def accuracy(model, loader):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


digits = load_digits()
parts = train_test_split(digits.data, digits.target, test_size=0.25, stratify=digits.target)
trainloader = DataLoader(DigitImages(parts[0], parts[2]), batch_size=32, shuffle=True)
testloader = DataLoader(DigitImages(parts[1], parts[3]), batch_size=150)
net = ResNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=6 * len(trainloader))
for epoch in range(6):
    net.train()
    running_loss = 0.0
    for images, labels in trainloader:
        optimizer.zero_grad()
        loss = criterion(net(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()
        running_loss += loss.item()
    print(
        f"[{epoch + 1}] loss: {running_loss / len(trainloader):.3f} "
        f"test accuracy: {100 * accuracy(net, testloader):.1f} %"
    )
