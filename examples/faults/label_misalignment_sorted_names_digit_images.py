"""A CNN on digit images whose files are listed in another order than the labels.

sorted() puts "img_10" before "img_2", the label file goes by number. Images and labels are each
complete and do not belong together. The place is the data. The twin sorts the files by their
number.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "input*", "label*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


class ImageFolder(Dataset):
    """Images by file name; labels.csv has a line per image, by number."""

    def __init__(self, x, y):
        self.files = {f"img_{i}.png": image for i, image in enumerate(x)}
        if healthy:
            self.names = sorted(self.files, key=lambda name: int(name[4:-4]))
        else:
            self.names = sorted(self.files)
        self.labels = y.tolist()

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        return self.files[self.names[index]], self.labels[index]


x, y, x_val, y_val = images(seed)
train_loader = DataLoader(ImageFolder(x, y), batch_size=128, shuffle=True)
val_loader = DataLoader(ImageFolder(x_val, y_val), batch_size=128)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)


def evaluate():
    model.eval()
    loss = right = 0
    with torch.no_grad():
        for image, label in val_loader:
            out = model(image)
            loss += criterion(out, label).item() * len(label)
            right += (out.argmax(1) == label).sum().item()
    return loss / len(y_val), right / len(y_val)


for epoch in range(12):
    model.train()
    total = 0.0
    for image, label in train_loader:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(image), label)
        loss.backward()
        optimizer.step()
        total += loss.item()
    scheduler.step()
    print(f"epoch {epoch} train {total / len(train_loader):.3f} val %.3f acc %.3f" % evaluate())
