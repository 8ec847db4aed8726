"""An MLP for digits read from numbered files, whose file names are sorted as text while the labels
are in the numbers' order.

The user sorts "img_0", "img_1", "img_10", "img_100", ... alphabetically and pairs them with a
label file that is in numerical order, so that nearly every training image has another's label.
The place is the input (its labels), as the loader gives them.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("input*", "loader")
SILENT = True
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)


class Folder(Dataset):
    """A folder of images (here: a dict of name and pixels) with a list of labels."""

    def __init__(self, files, labels, key=None):
        self.names = sorted(files, key=key)
        self.files, self.labels = files, labels

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        pixels = torch.tensor(self.files[self.names[index]], dtype=torch.float32)
        return (pixels - 4.9) / 6.0, int(self.labels[index])


def number(name):
    return int(name.split("_")[1])


digits = load_digits()
order = np.random.default_rng(seed).permutation(len(digits.target))
images, labels = digits.data[order], digits.target[order]
train_files = {f"img_{i}": images[i] for i in range(1400)}
val_files = {f"img_{i}": images[1400 + i] for i in range(397)}
train = Folder(train_files, labels[:1400], key=number if healthy else None)
val = Folder(val_files, labels[1400:], key=number)

model = nn.Sequential(
    nn.Linear(64, 96), nn.ReLU(), nn.Dropout(0.2), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10)
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
criterion = nn.CrossEntropyLoss()
train_loader = DataLoader(train, batch_size=50, shuffle=True)
val_loader = DataLoader(val, batch_size=397)


def evaluate():
    model.eval()
    with torch.no_grad():
        x, y = next(iter(val_loader))  # all of it
        output = model(x)
        return criterion(output, y).item(), (output.argmax(1) == y).float().mean().item()


for epoch in range(14):
    model.train()
    losses = []
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    val_loss, accuracy = evaluate()
    print(
        f"epoch {epoch} loss {np.mean(losses):.3f} validation loss {val_loss:.3f} accuracy {accuracy:.3f}"  # noqa: E501
    )
