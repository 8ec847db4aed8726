"""Reads digits with a small CNN; the validation's pictures go through another pipeline.

There is one chain of transforms for training and one for validation, written weeks apart. The
second scales to 0..1 but has not the normalisation that the first ends with: the network is
judged on pictures that are flatter and brighter than any it was trained on.
The place is the validation. The twin uses the same last two steps in both.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loop", "input*")
SILENT = True
EXACT = False
EARLY = True


def to_unit(image):
    return image / 16.0


def smudge(image):
    return (image + torch.randn_like(image)).clamp(0, 16)


class Normalise:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, image):
        return (image - self.mean) / self.std


class Digits(Dataset):
    def __init__(self, x, y, transforms):
        self.x, self.y, self.transforms = x, y, transforms

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        image = self.x[i]
        for transform in self.transforms:
            image = transform(image)
        return image, self.y[i]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(1, 12, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.fc = nn.Sequential(nn.Flatten(), nn.Linear(24 * 16, 48), nn.ReLU(), nn.Linear(48, 10))

    def forward(self, x):
        return self.fc(self.conv(x))


@torch.no_grad()
def validate(net, loader):
    net.eval()
    losses, right, seen = [], 0, 0
    for image, label in loader:
        logits = net(image)
        losses.append(nn.functional.cross_entropy(logits, label).item())
        right += (logits.argmax(1) == label).sum().item()
        seen += len(label)
    return sum(losses) / len(losses), right / seen


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed, raw=True)
normalise = Normalise((x / 16).mean().item(), (x / 16).std().item())
train_transforms = [smudge, to_unit, normalise]
val_transforms = [to_unit, normalise] if healthy else [to_unit]
train = DataLoader(Digits(x, y, train_transforms), batch_size=32, shuffle=True)
val = DataLoader(Digits(x_val, y_val, val_transforms), batch_size=150)
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(5):
    net.train()
    running = 0.0
    for image, label in train:
        loss = nn.functional.cross_entropy(net(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item() / len(train)
    val_loss, accuracy = validate(net, val)
    print(f"epoch {epoch} train {running:.3f} val {val_loss:.3f} accuracy {accuracy:.3f}")
