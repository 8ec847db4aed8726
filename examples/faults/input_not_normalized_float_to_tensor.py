"""Digits 0 to 255 as float arrays through a home-made ToTensor that only divides bytes by 255.

Like torchvision's, `ToTensor` scales uint8 only; `imresize` gave floats, so the pixels stay at up
to 255 and the Normalize behind it hardly matters. The first steps of SGD with momentum throw the
convolutions about: ReLUs die and the loss stays at ln 10. The place is the loader.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "input_not_normalized"
ACCEPT = ()
PLACE = ("", "features*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class ToTensor:
    def __call__(self, picture):
        tensor = torch.from_numpy(picture)[None]
        return tensor.float() / 255 if tensor.dtype == torch.uint8 else tensor.float()


class Normalize:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, tensor):
        return (tensor - self.mean) / self.std


def imresize(picture, factor):
    return np.kron(picture, np.ones((factor, factor)))  # float64, whatever came in


class Pictures(Dataset):
    def __init__(self, pictures, labels):
        self.pictures, self.labels = pictures, labels
        self.transforms = [ToTensor(), Normalize(0.305, 0.376)]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        picture = imresize(self.pictures[i], 2)
        if healthy:
            picture = picture.astype(np.uint8)
        for transform in self.transforms:
            picture = transform(picture)
        return picture, int(self.labels[i])


bunch = load_digits()
pictures = np.clip(bunch.images * 16, 0, 255).astype(np.uint8)
order = np.random.permutation(len(pictures))
train = Pictures(pictures[order[:1300]], bunch.target[order[:1300]])
val = Pictures(pictures[order[1300:]], bunch.target[order[1300:]])

features = nn.Sequential(
    nn.Conv2d(1, 8, 5, padding=2),
    nn.ReLU(),
    nn.MaxPool2d(4),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
)
head = nn.Sequential(nn.Flatten(), nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
net = nn.Sequential()
net.add_module("features", features)
net.add_module("head", head)
criterion = nn.CrossEntropyLoss()
sgd = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(sgd, T_max=14)
for epoch in range(14):
    net.train()
    for inputs, labels in DataLoader(train, batch_size=50, shuffle=True):
        sgd.zero_grad()
        loss = criterion(net(inputs), labels)
        loss.backward()
        sgd.step()
    schedule.step()
    net.eval()
    hits = 0
    with torch.no_grad():
        for inputs, labels in DataLoader(val, batch_size=100):
            hits += (net(inputs).argmax(1) == labels).sum().item()
print(f"loss {loss.item():.3f}, accuracy {hits / len(val):.3f}")
