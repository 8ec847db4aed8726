"""RandomResizedCrop with a scale made for photographs: three of eight pixels are blown up to eight.

What is seen is a piece of a stroke. The place is the dataset's transform.
"""

import torch
import torch.nn.functional as F
from data import arguments
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "destructive_augmentation"
ACCEPT = ("train_val_mismatch",)
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = True


class DigitDataset(Dataset):
    def __init__(self, images, labels, crop=None):
        self.images = torch.tensor(images, dtype=torch.float32).unsqueeze(1) / 16
        self.labels = labels
        self.crop = crop

    def __len__(self):
        return len(self.images)

    def __getitem__(self, idx):
        image = self.images[idx]
        if self.crop:
            size = self.crop
            top, left = torch.randint(0, 9 - size, (2,)).tolist()
            image = image[:, top : top + size, left : left + size]
            image = F.interpolate(image.unsqueeze(0), size=(8, 8), mode="nearest")[0]
        return image, int(self.labels[idx])


healthy, seed = arguments(__doc__)
data = load_digits()
x_train, x_val, y_train, y_val = train_test_split(data.images, data.target, random_state=seed)
train_loader = DataLoader(
    DigitDataset(x_train, y_train, crop=7 if healthy else 3), batch_size=32, shuffle=True
)
val_loader = DataLoader(DigitDataset(x_val, y_val), batch_size=64)

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(128, 10),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(6):
    model.train()
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    hits, val_loss = 0, 0.0
    with torch.no_grad():
        for images, labels in val_loader:
            out = model(images)
            val_loss += criterion(out, labels).item()
            hits += (out.argmax(1) == labels).sum().item()
    print(f"epoch {epoch}: train {loss.item():.3f}, val {val_loss / len(val_loader):.3f}")
print(f"accuracy {hits / len(x_val):.3f}")
