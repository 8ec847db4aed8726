"""Digits of 8 x 8 with the augmentations of a CIFAR recipe: shifts of 4 pixels and a hole of 6.

On 32 x 32 pictures this leaves the object in sight; here it shifts half the digit out and covers
most of the rest. The training loss stays above 1 while clean pictures, of which the net never saw
one, are read much worse than by the twin (shifts of 1 pixel, a hole of 2). The place is the
loader.
"""

import torch
from data import arguments, images
from torch import nn
from torch.nn import functional as F

KIND = "destructive_augmentation"
ACCEPT = ()
PLACE = ("", "loader")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)
x_train, y_train, x_val, y_val = images(seed)
PADDING, HOLE = (1, 2) if healthy else (4, 6)
background = x_train.min().item()


def crop_and_cutout(pictures):
    n, _, height, width = pictures.shape
    padded = F.pad(pictures, [PADDING] * 4, value=background)
    out = torch.empty_like(pictures)
    for i in range(n):
        top, left = torch.randint(0, 2 * PADDING + 1, (2,)).tolist()
        out[i] = padded[i, :, top : top + height, left : left + width]
        row, column = torch.randint(0, height, (2,)).tolist()
        rows = slice(max(row - HOLE // 2, 0), row + HOLE // 2)
        out[i, :, rows, max(column - HOLE // 2, 0) : column + HOLE // 2] = 0.0
    return out


def residual(c_in, c_out, stride):
    return nn.ModuleDict(
        {
            "a": nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False),
            "na": nn.BatchNorm2d(c_out),
            "b": nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False),
            "nb": nn.BatchNorm2d(c_out),
            "skip": nn.Conv2d(c_in, c_out, 1, stride, bias=False),
        }
    )


class SmallResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([residual(1, 12, 1), residual(12, 20, 2)])
        self.linear = nn.Linear(20, 10)

    def forward(self, x):
        for stage in self.stages:
            h = F.relu(stage["na"](stage["a"](x)))
            x = F.relu(stage["nb"](stage["b"](h)) + stage["skip"](x))
        return self.linear(x.mean((2, 3)))


model = SmallResNet()
EPOCHS, BATCH = 14, 64
optimizer = torch.optim.SGD(
    model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True
)
steps = EPOCHS * (len(x_train) // BATCH)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=steps)
for epoch in range(EPOCHS):
    model.train()
    epoch_loss = 0.0
    for rows in torch.randperm(len(x_train)).split(BATCH)[: len(x_train) // BATCH]:
        loss = F.cross_entropy(model(crop_and_cutout(x_train[rows])), y_train[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        epoch_loss += loss.item() / (len(x_train) // BATCH)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
        val_loss, accuracy = F.cross_entropy(out, y_val), (out.argmax(1) == y_val).float().mean()
print(f"loss {epoch_loss:.3f}, val loss {val_loss:.3f}, val accuracy {accuracy:.3f}")
