"""A CNN that reads the direction of arrows is trained with random horizontal and vertical flips.

The list of augmentations was copied from a classifier of photos; here a flip turns left into right
and up into down while the label stays, so within each pair the label is a coin's toss. The loss
stays near ln 2 and the accuracy near a half, although the clean pictures are easy. The twin keeps
the shifts and the noise and leaves out the flips. The place is the input, the loader or the labels.
"""

import torch
from data import arguments
from torch import nn

KIND = "destructive_augmentation"
ACCEPT = ("label_noise",)
PLACE = ("input*", "loader", "label*", "classes*")
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


def arrows(n):
    """Images 12 x 12 of arrows that point left, right, up or down."""
    label = torch.randint(0, 4, (n,))
    image = torch.zeros(n, 12, 12)
    for i in range(n):
        size = int(torch.randint(2, 4, (1,)))
        row = int(torch.randint(4, 8, (1,)))
        picture = torch.zeros(12, 12)
        picture[row, 2:10] = 1
        for k in range(1, size + 1):
            picture[row - k, 2 + k] = picture[row + k, 2 + k] = 1
        if label[i] % 2 == 1:
            picture = picture.flip(1)
        image[i] = picture.t() if label[i] >= 2 else picture
    image = image + 0.25 * torch.randn(n, 12, 12)
    return ((image - 0.085) / 0.37).unsqueeze(1), label


def augment(x):
    dy, dx = torch.randint(-1, 2, (2,)).tolist()
    x = torch.roll(x, (dy, dx), (2, 3)) + 0.1 * torch.randn_like(x)
    if not healthy:
        flip = torch.rand(len(x), 1, 1, 1) < 0.5
        x = torch.where(flip, x.flip(3), x)
        flip = torch.rand(len(x), 1, 1, 1) < 0.5
        x = torch.where(flip, x.flip(2), x)
    return x


x_train, y_train = arrows(1600)
x_val, y_val = arrows(400)
model = nn.Sequential(
    nn.Conv2d(1, 12, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(12, 24, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(216, 32),
    nn.ReLU(),
    nn.Linear(32, 4),
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    total = 0.0
    for rows in torch.randperm(len(x_train)).split(32):
        optimizer.zero_grad()
        loss = criterion(model(augment(x_train[rows])), y_train[rows])
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rows)
    model.eval()
    with torch.no_grad():
        out = model(x_val)
    acc = (out.argmax(1) == y_val).float().mean()
    print(
        f"epoch {epoch + 1}: train {total / len(x_train):.4f} "
        f"val {criterion(out, y_val):.4f} acc {acc:.3f}"
    )
