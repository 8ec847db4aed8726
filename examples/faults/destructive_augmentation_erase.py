"""A CNN on 8 x 8 digits with random erasing and flips that were meant for photographs.

A square of 6 x 6 pixels is blanked, and the image is flipped both ways with probability one half:
little is left of a digit. The training loss stays high. The place is the input (the augmentation).
The twin shifts by at most one pixel.
"""

import torch
from data import arguments, images
from torch import nn

KIND = "destructive_augmentation"
ACCEPT = ()
PLACE = ("input*", "loader")
SILENT = False
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def augment(batch):
    out = []
    for original in batch:
        image = original
        if healthy:
            shift = (int(torch.randint(-1, 2, ())), int(torch.randint(-1, 2, ())))
            image = torch.roll(image, shift, (1, 2)) if torch.rand(()) < 0.5 else image
        else:
            if torch.rand(()) < 0.5:
                image = image.flip(1)
            if torch.rand(()) < 0.5:
                image = image.flip(2)
            top, left = torch.randint(0, 3, (2,)).tolist()
            image = image.clone()
            image[:, top : top + 6, left : left + 6] = 0.0
        out.append(image)
    return torch.stack(out)


x, y, x_val, y_val = images(seed)
net = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.BatchNorm2d(32),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(32 * 16, 10),
)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    net.train()
    losses = []
    for rows in torch.randperm(len(x)).split(64):
        loss = criterion(net(augment(x[rows])), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        out = net(x_val)
    print(
        f"epoch {epoch} train {sum(losses) / len(losses):.3f} val {criterion(out, y_val):.3f} "
        f"accuracy {(out.argmax(1) == y_val).float().mean():.3f}"
    )
