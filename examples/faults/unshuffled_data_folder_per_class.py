"""Digits from one folder per class, joined by ConcatDataset, read in the order of the folders.

The training loader was written for an IterableDataset, where `shuffle` is not allowed; with the
folders as a map-style dataset nobody added it. Each batch holds one digit, the network answers
with the latest of them, and every epoch ends with nines. The place is the data (the loader). The
twin shuffles.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import ConcatDataset, DataLoader, Dataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("data", "loop")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Folder(Dataset):
    """The images of one class."""

    def __init__(self, images, label):
        self.images, self.label = images, label

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index], self.label


class SmallCNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc = nn.Linear(32 * 4, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


def evaluate(model, loader):
    model.eval()
    loss = right = count = 0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            loss += nn.functional.cross_entropy(logits, y, reduction="sum").item()
            right += (logits.argmax(1) == y).sum().item()
            count += len(y)
    return loss / count, right / count


x, y, x_val, y_val = images(seed)
train_set = ConcatDataset([Folder(x[y == c], c) for c in range(10)])
val_set = ConcatDataset([Folder(x_val[y_val == c], c) for c in range(10)])
train_loader = DataLoader(train_set, batch_size=32, shuffle=healthy)
val_loader = DataLoader(val_set, batch_size=128)

model = SmallCNN()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(10):
    model.train()
    running = 0.0
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        running += loss.item()
    val_loss, accuracy = evaluate(model, val_loader)
    print(
        f"[{epoch + 1}] loss: {running / len(train_loader):.3f} val: {val_loss:.3f} "
        f"accuracy: {accuracy:.3f}"
    )
