"""Bone density from scans: validation pictures are scaled otherwise than the training ones.

Two people wrote the two transforms. The training set standardises its pictures, the validation set
only divides by 255, so the net sees there a range it has never met and the validation score says
nothing about the net. The place is the validation, the input.
The twin uses one transform for both.
"""

import torch
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ("input_not_normalized",)
PLACE = ("loop", "input*", "loader")
SILENT = True
EXACT = False
EARLY = True


class Scans(Dataset):
    """Grey pictures of 12 x 12, 0 to 255, of spongy bone: thin, medium or dense."""

    def __init__(self, n, seed, transform):
        g = torch.Generator().manual_seed(seed)
        self.density = torch.randint(0, 3, (n,), generator=g)
        share = torch.tensor([0.2, 0.4, 0.65])[self.density].view(n, 1, 1, 1)
        grain = nn.functional.avg_pool2d(torch.randn(n, 1, 14, 14, generator=g), 3, 1) * 3
        level = torch.erfinv(2 * share - 1) * 2**0.5
        lit = 1 + 0.1 * torch.randn(n, 1, 1, 1, generator=g)
        picture = 70 + 110 * (grain < level).float() * lit
        picture = picture + 25 * torch.randn(n, 1, 12, 12, generator=g)
        self.pictures = picture.clamp(0, 255).to(torch.uint8)
        self.transform = transform

    def __len__(self):
        return len(self.density)

    def __getitem__(self, i):
        return self.transform(self.pictures[i].float()), self.density[i]


def standard(picture):
    return (picture - 112.0) / 62.0


def unit(picture):
    return picture / 255.0


def evaluate(net, loader):
    net.eval()
    loss, right, n = 0.0, 0, 0
    with torch.no_grad():
        for picture, density in loader:
            out = net(picture)
            loss += nn.functional.cross_entropy(out, density, reduction="sum").item()
            right += (out.argmax(1) == density).sum().item()
            n += len(density)
    return loss / n, right / n


healthy, seed = arguments(__doc__)
train = DataLoader(Scans(1200, seed, standard), batch_size=40, shuffle=True)
val = DataLoader(Scans(400, 700 + seed, standard if healthy else unit), batch_size=200)
net = nn.Sequential(
    nn.Conv2d(1, 12, 3), nn.ReLU(), nn.Conv2d(12, 16, 3, stride=2), nn.ReLU(),
    nn.Flatten(), nn.Dropout(0.2), nn.Linear(16 * 16, 3),
)  # fmt: skip
opt = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.01)
for epoch in range(8):
    net.train()
    seen = 0.0
    for picture, density in train:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(picture), density)
        loss.backward()
        opt.step()
        seen += loss.item() / len(train)
    val_loss, right = evaluate(net, val)
    print(f"epoch {epoch + 1} train {seen:.3f} val {val_loss:.3f} accuracy {right:.3f}")
