"""A small vision transformer reads digits. The pixels are standardised by a transform that sits in
the list of augmentations, and the validation data is loaded without augmentations.

So the network is trained on standardised pixels and validated on grey values of 0 to 16: the
training loss falls nicely while validation is poor from the first epoch on. The place is the input
of the validation.
"""

import torch
from data import arguments, images
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input",)
SILENT = True
EXACT = False
EARLY = True

healthy, seed = arguments(__doc__)


class Standardise:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, image):
        return (image - self.mean) / self.std


class Shift:
    """Moves the picture by up to one pixel."""

    def __call__(self, image):
        move = torch.randint(-1, 2, (2,)).tolist()
        return torch.roll(image, move, dims=(1, 2))


class Digits(Dataset):
    def __init__(self, x, y, transforms):
        self.x, self.y, self.transforms = x, y, transforms

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        image = self.x[i]
        for transform in self.transforms:
            image = transform(image)
        return image, self.y[i]


class ViT(nn.Module):
    def __init__(self, width=48, layers=2):
        super().__init__()
        self.patch = nn.Conv2d(1, width, 2, stride=2)
        self.place = nn.Parameter(0.5 * torch.randn(1, 16, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.05, batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        tokens = self.patch(x).flatten(2).transpose(1, 2) + self.place
        return self.head(self.norm(self.encoder(tokens)).mean(1))


def evaluate(model, loader):
    model.eval()
    total = right = seen = 0
    with torch.no_grad():
        for x, y in loader:
            out = model(x)
            total += nn.functional.cross_entropy(out, y, reduction="sum").item()
            right += (out.argmax(1) == y).sum().item()
            seen += len(y)
    return total / seen, right / seen


x, y, x_val, y_val = images(seed, raw=True)
standardise = Standardise(x.mean(), x.std())
augmentations = [standardise, Shift()]
train = DataLoader(Digits(x, y, augmentations), batch_size=32, shuffle=True, drop_last=True)
val = DataLoader(Digits(x_val, y_val, [standardise] if healthy else []), batch_size=256)

model = ViT()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=10 * len(train))
for epoch in range(10):
    model.train()
    running = 0.0
    for xb, yb in train:
        loss = nn.functional.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        running += loss.item() / len(train)
    print(
        "epoch {:2d}  train {:.4f}  val {:.4f}  accuracy {:.3f}".format(
            epoch, running, *evaluate(model, val)
        )
    )
