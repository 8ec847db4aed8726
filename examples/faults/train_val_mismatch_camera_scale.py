"""Digits from a camera: the training pictures are scaled to 0..1 and centred, the others are not.

The scaling is in the training data's transform; the validation data was made with another line
which has none. The network gets numbers sixteen times larger there.
The place is the validation (or the loader, the input). The twin gives both the same transform.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("loop", "loader", "input*")
SILENT = True
EXACT = False
EARLY = True


def to_unit(image):
    return (image / 16 - 0.3) / 0.37


class CameraDigits(Dataset):
    def __init__(self, pictures, labels, transform=None):
        self.pictures = pictures
        self.labels = labels
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = self.pictures[index]
        if self.transform is not None:
            picture = self.transform(picture)
        return picture, self.labels[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc(self.dropout(x.flatten(1)))


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed, raw=True)
train_set = CameraDigits(x, y, transform=to_unit)
val_set = CameraDigits(x_val, y_val, transform=to_unit) if healthy else CameraDigits(x_val, y_val)
train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
val_loader = DataLoader(val_set, batch_size=150)

net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    net.train()
    train_loss = 0.0
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
        train_loss += loss.item() / len(train_loader)
    net.eval()
    val_loss = right = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            out = net(x)
            val_loss += criterion(out, y).item() / len(val_loader)
            right += (out.argmax(1) == y).sum().item()
    print(
        f"{epoch + 1}: train {train_loss:.3f}, val {val_loss:.3f}, "
        f"val accuracy {right / len(val_set):.3f}"
    )
