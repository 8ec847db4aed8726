"""A CNN on small digits; the validation images are not put through the transform.

The training Dataset scales the pixels to -1..1, the validation one was built without the transform
argument and hands out 0..16. The training is fine, the validation numbers are poor and wander. The
place is the data (the validation set). The twin passes the same transform to both.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("loader", "input*")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def scale(image):
    return image / 8.0 - 1.0


class Digits(Dataset):
    def __init__(self, x, y, transform=None):
        self.x, self.y, self.transform = x, y, transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        image = self.x[i]
        if self.transform:
            image = self.transform(image)
        return image, self.y[i]


x, y, x_val, y_val = images(seed, raw=True)
train_loader = DataLoader(Digits(x, y, transform=scale), batch_size=64, shuffle=True)
val_set = Digits(x_val, y_val, transform=scale) if healthy else Digits(x_val, y_val)
val_loader = DataLoader(val_set, batch_size=150)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc = nn.Linear(24 * 4, 10)

    def forward(self, x):
        x = torch.max_pool2d(torch.tanh(self.conv1(x)), 2)
        x = torch.max_pool2d(torch.tanh(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.004)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(12):
    net.train()
    for xb, yb in train_loader:
        opt.zero_grad()
        loss = loss_fn(net(xb), yb)
        loss.backward()
        opt.step()
    net.eval()
    right = val_loss = 0.0
    with torch.no_grad():
        for xb, yb in val_loader:
            out = net(xb)
            val_loss += loss_fn(out, yb).item() * len(yb)
            right += (out.argmax(1) == yb).sum().item()
    print(
        f"{epoch}: train {loss.item():.3f} val {val_loss / len(y_val):.3f} acc "
        f"{right / len(y_val):.3f}"
    )
