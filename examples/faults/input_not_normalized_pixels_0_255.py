"""A CNN with tanh on images of bytes, 0 to 255.

The images come from a file of bytes and are only turned into floats. The first layer saturates; the
loss jumps about and the accuracy stays ten points below what the network can do. The place is the
input. The twin divides by 255 and subtracts one half.
"""

import numpy as np
import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "input_not_normalized"
ACCEPT = ("saturated_activation",)
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class ByteImages(Dataset):
    def __init__(self, x, y):
        self.bytes = np.round(x.numpy() * 255 / 16).astype(np.uint8)
        self.labels = y

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        image = torch.from_numpy(self.bytes[i]).float()
        if healthy:
            image = image / 255 - 0.5
        return image, self.labels[i]


x, y, x_val, y_val = images(seed, raw=True)
train_loader = DataLoader(ByteImages(x, y), batch_size=64, shuffle=True)
val_loader = DataLoader(ByteImages(x_val, y_val), batch_size=256)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 3, padding=1)
        self.conv2 = nn.Conv2d(6, 16, 3)
        self.fc1 = nn.Linear(64 * 1, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.avg_pool2d(torch.tanh(self.conv1(x)), 2)
        x = torch.tanh(self.conv2(x))
        return self.fc2(torch.tanh(self.fc1(x.flatten(1))))


model = LeNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(14):
    model.train()
    for image, label in train_loader:
        loss = F.cross_entropy(model(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    losses, right = [], 0
    with torch.no_grad():
        for image, label in val_loader:
            out = model(image)
            losses.append(F.cross_entropy(out, label).item())
            right += (out.argmax(1) == label).sum().item()
    print(
        f"epoch {epoch} train {loss.item():.3f} val {np.mean(losses):.3f} accuracy "
        f"{right / len(y_val):.3f}"
    )
