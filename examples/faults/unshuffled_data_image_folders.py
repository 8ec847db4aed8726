"""A CNN reads the pictures of digits folder by folder, one class after the other, unshuffled.

The data set lists the folder of the zeros, then that of the ones and so on, and the loader was made
without shuffle=True. The net learns which class is on at the moment and forgets the others: the
loss leaps at each new folder, is above that of guessing for epochs, and the validation loss ends at
five times the twin's, which shuffles in the loader. The place is the loader, the labels or the
input.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "unshuffled_data"
ACCEPT = ()
PLACE = ("loader", "label*", "classes*", "input*")
SILENT = True
EXACT = True
EARLY = True

healthy, seed = arguments(__doc__)


class FolderDataset(Dataset):
    """Pictures as os.walk finds them: class 0 first, class 9 last."""

    def __init__(self, pictures, labels):
        self.samples = [(p, k) for k in range(10) for p in pictures[labels == k]]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        return self.samples[i]


def conv_block(a, b):
    return nn.Sequential(
        nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.MaxPool2d(2)
    )


def train(model, loader, optimizer):
    model.train()
    losses = []
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def evaluate(model, loader):
    model.eval()
    total, right, seen = 0.0, 0, 0
    with torch.no_grad():
        for xb, yb in loader:
            out = model(xb)
            total += nn.functional.cross_entropy(out, yb, reduction="sum").item()
            right += (out.argmax(1) == yb).sum().item()
            seen += len(yb)
    return total / seen, right / seen


x_train, y_train, x_val, y_val = images(seed)
train_loader = DataLoader(FolderDataset(x_train, y_train), batch_size=32, shuffle=healthy)
val_loader = DataLoader(FolderDataset(x_val, y_val), batch_size=150)
model = nn.Sequential(conv_block(1, 16), conv_block(16, 32), nn.Flatten(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(1, 11):
    train_loss = train(model, train_loader, optimizer)
    val_loss, val_acc = evaluate(model, val_loader)
    print(f"epoch {epoch}: train {train_loss:.4f} val {val_loss:.4f} acc {val_acc:.3f}")
