"""Pictures of digits, of which every third file cannot be read any more.

Fault: the data set returns its first picture for a file that it cannot read, so that the epoch goes
on, with the label of the file that was asked for. The twin leaves these files out. The place is the
loader. The loss falls to what the other pictures allow.
"""

import torch
import torch.nn.functional as F
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "duplicated_rows"
ACCEPT = ("label_noise", "label_misalignment")
PLACE = ("loader", "input*")
SILENT = True
EXACT = False
EARLY = True


class Pictures(Dataset):
    def __init__(self, pictures, labels, is_readable):
        self.files = range(len(labels))
        if healthy:
            self.files = is_readable.nonzero().flatten().tolist()
        self.pictures, self.labels, self.is_readable = pictures, labels, is_readable

    def __len__(self):
        return len(self.files)

    def read(self, file):
        if not self.is_readable[file]:
            raise OSError(f"{file}: not a picture")
        return self.pictures[file]

    def __getitem__(self, number):
        file = self.files[number]
        try:
            picture = self.read(file)
        except OSError:
            picture = self.read(0)
        return picture, self.labels[file]


healthy, seed = arguments(__doc__)
x, y, x_val, y_val = images(seed)
is_readable = torch.rand(len(x)) > 0.33
is_readable[0] = True
loader = DataLoader(Pictures(x, y, is_readable), batch_size=32, shuffle=True)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 16, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(4):
    model.train()
    for pictures, labels in loader:
        loss = F.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(x_val)
        val_loss = F.cross_entropy(scores, y_val)
    accuracy = (scores.argmax(1) == y_val).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f}, val {val_loss.item():.3f} ({accuracy:.3f})")
