"""Nuclei in microscope pictures by a little U-Net; the validation set has its own __getitem__.

The training set standardises by mean and std of the pictures; the validation class overrides
__getitem__ to leave the flips out, and with them left out the standardisation. The net sees 0 to 1
where it learned -1 to 3. The place is the input of the validation. The twin's override
standardises too.
"""

import torch
import torch.nn.functional as F
from data import arguments
from torch import nn
from torch.utils.data import DataLoader, Dataset

KIND = "train_val_mismatch"
ACCEPT = ()
PLACE = ("input", "data")
SILENT = False
EXACT = False
EARLY = False

healthy, seed = arguments(__doc__)


def slides(n, size=24):
    """Grey values 0 to 255, bright nuclei before an uneven background, and their masks."""
    yy, xx = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    pictures, masks = [], []
    for _ in range(n):
        mask = torch.zeros(size, size, dtype=torch.bool)
        for _ in range(int(torch.randint(2, 6, ()))):
            cy, cx = torch.rand(2) * size
            mask |= (yy - cy) ** 2 + (xx - cx) ** 2 < (2 + 2 * torch.rand(())) ** 2
        shade = 40 + 25 * torch.sin(xx / 8 + torch.rand(()) * 6)
        pictures.append((shade + 45 * mask + 14 * torch.randn(size, size)).clamp(0, 255))
        masks.append(mask.float())
    return torch.stack(pictures)[:, None], torch.stack(masks)[:, None]


class Slides(Dataset):
    def __init__(self, pictures, masks, mean, std):
        self.pictures, self.masks, self.mean, self.std = pictures / 255, masks, mean, std

    def normalise(self, picture):
        return (picture - self.mean) / self.std

    def __len__(self):
        return len(self.masks)

    def __getitem__(self, i):
        picture, mask = self.normalise(self.pictures[i]), self.masks[i]
        if torch.rand(()) < 0.5:
            picture, mask = picture.flip(-1), mask.flip(-1)
        return picture, mask


class ValidationSlides(Slides):
    def __getitem__(self, i):
        picture = self.pictures[i]
        return self.normalise(picture) if healthy else picture, self.masks[i]


class UNet(nn.Module):
    def __init__(self, c=12):
        super().__init__()
        self.down = nn.Sequential(
            nn.Conv2d(1, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU()
        )
        self.deep = nn.Sequential(
            nn.Conv2d(c, 2 * c, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(2 * c, c, 3, padding=1),
            nn.ReLU(),
        )
        self.up = nn.Sequential(nn.Conv2d(2 * c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, 1, 1))

    def forward(self, x):
        skip = self.down(x)
        deep = self.deep(F.max_pool2d(skip, 2))
        return self.up(torch.cat([skip, F.interpolate(deep, scale_factor=2)], 1))


pictures, masks = slides(400)
val_pictures, val_masks = slides(100)
mean, std = (pictures / 255).mean(), (pictures / 255).std()
loader = DataLoader(Slides(pictures, masks, mean, std), 16, shuffle=True)
val_loader = DataLoader(ValidationSlides(val_pictures, val_masks, mean, std), 50)
model = UNet()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(8):
    model.train()
    for x, y in loader:
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    both = val_loss = area = 0.0
    with torch.no_grad():
        for x, y in val_loader:
            out = model(x)
            val_loss += F.binary_cross_entropy_with_logits(out, y).item() / len(val_loader)
            both += ((out > 0) * y).sum().item()
            area += (out > 0).sum().item() + y.sum().item()
    print(
        f"epoch {epoch} loss {loss.item():.4f} val loss {val_loss:.4f} "
        f"val dice {2 * both / area:.3f}"
    )
