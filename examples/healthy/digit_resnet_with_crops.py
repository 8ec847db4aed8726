"""Small pictures of digits by a residual CNN with random crops and erased patches, one cycle.

The recipe of every CIFAR repository in small: batch norm without bias before it, shortcuts with a
1 x 1 convolution where the width changes, SGD with Nesterov momentum, label smoothing, OneCycleLR.
No flips: a mirrored digit is no digit.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

ODD = "label smoothing keeps the loss well above zero, and training pictures differ from the others"

_, seed = arguments(__doc__)


class Digits(Dataset):
    def __init__(self, x, y, augment):
        self.x, self.y, self.augment = x, y, augment

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        image = self.x[i]
        if self.augment:
            padded = F.pad(image, (1, 1, 1, 1), value=image.min().item())
            top, left = torch.randint(0, 3, (2,)).tolist()
            image = padded[:, top : top + 8, left : left + 8]
            if torch.rand(()) < 0.25:
                r, c = torch.randint(0, 7, (2,)).tolist()
                image = image.clone()
                image[:, r : r + 2, c : c + 2] = 0
        return image, self.y[i]


class Residual(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(c_out)
        self.conv2 = nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(c_out)
        self.shortcut = nn.Identity()
        if stride != 1 or c_in != c_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out)
            )

    def forward(self, x):
        h = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(h)) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.layer1 = Residual(width, width, 1)
        self.layer2 = Residual(width, 2 * width, 2)
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, x):
        x = F.relu(self.bn(self.stem(x)))
        x = self.layer2(self.layer1(x))
        return self.fc(x.mean((2, 3)))


x, y, x_val, y_val = images(seed)
train_loader = DataLoader(Digits(x, y, True), batch_size=64, shuffle=True, drop_last=True)
val_loader = DataLoader(Digits(x_val, y_val, False), batch_size=150)
model = ResNet()
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
EPOCHS = 10
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True
)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=0.1, epochs=EPOCHS, steps_per_epoch=len(train_loader)
)

for epoch in range(EPOCHS):
    model.train()
    total = 0.0
    for image, label in train_loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(image), label)
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    model.eval()
    with torch.no_grad():
        hits = sum((model(image).argmax(1) == label).sum().item() for image, label in val_loader)
    print(f"epoch {epoch} loss {total / len(train_loader):.3f} accuracy {hits / len(y_val):.3f}")
