"""Pictures are read in the order of their sorted names, 0, 1, 10, 100, ...; the labels are in that
of the numbers.

Picture k gets the label of another. The place is the loader. The loss stays at that of a guess, and
what it falls later is learning by heart (not silent). Held-out pictures, looked at one by one with
their true label, are guessed. Not exact.
"""

import numpy as np
import torch
from data import arguments
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "label_misalignment"
ACCEPT = ("label_noise",)
PLACE = ("loader", "loss*", "")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
bunch = load_digits()
order = np.random.default_rng(seed).permutation(len(bunch.target))
held_out, order = order[:400], order[400:]

# a folder of files img_<number>.npy, and labels.csv with a line for each number
folder = {f"img_{number}.npy": bunch.images[row] for number, row in enumerate(order)}
labels_csv = [(number, int(bunch.target[row])) for number, row in enumerate(order)]


class Folder(Dataset):
    def __init__(self, folder, labels):
        by_number = (lambda name: int(name[4:-4])) if healthy else None
        names = sorted(folder, key=by_number)
        self.files = [folder[name] for name in names]
        self.labels = [label for _, label in labels]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        picture = torch.tensor(self.files[index], dtype=torch.float32)
        return (picture[None] - 4.88) / 6.02, self.labels[index]


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc1 = nn.Linear(24 * 4, 48)
        self.fc2 = nn.Linear(48, 10)
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.fc2(torch.relu(self.fc1(x.flatten(1))))


loader = DataLoader(Folder(folder, labels_csv), batch_size=32, shuffle=True, drop_last=True)
model = LeNet()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    model.train()
    total = 0.0
    for pictures, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(pictures), labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.3f}")

model.eval()
with torch.no_grad():
    pictures = torch.tensor(bunch.images[held_out], dtype=torch.float32)[:, None]
    said = model((pictures - 4.88) / 6.02).argmax(1).numpy()
print(f"held-out accuracy {(said == bunch.target[held_out]).mean():.3f}")
