"""Roads are segmented by a small U-Net of one output channel, to which the configuration gives a
softmax over channels, so every pixel is road with certainty.

activation="softmax2d" was kept from a model with several classes. Over the only channel it is 1
everywhere, its gradient is zero, and the Dice and cross entropy losses never move from their first
value. The place is the activation, net.activate.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, random_split

KIND = "softmax_single_unit"
ACCEPT = ()
PLACE = ("activate", "net.activate", "out", "output", "model", "loss")
SILENT = True
EXACT = True
EARLY = True
healthy, seed = arguments(__doc__)


@dataclass
class RoadConfig:
    classes: int = 1
    activation: str = "sigmoid" if healthy else "softmax2d"
    width: int = 10
    lr: float = 4e-3


class RoadTiles(Dataset):
    def __init__(self, n: int, size: int = 16) -> None:
        rows, cols = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
        angle = 3.14 * torch.rand(n, 1, 1)
        offset = 6 * torch.rand(n, 1, 1) - 3
        along = (rows - size / 2) * angle.cos() + (cols - size / 2) * angle.sin()
        across = along + offset + 0.8 * torch.sin(cols / 3 + 6 * torch.rand(n, 1, 1))
        self.masks = (across.abs() < 1.8).float().unsqueeze(1)
        grey = self.masks + 0.9 * (torch.rand(n, 1, size, size) < 0.06)
        bands = torch.cat([grey, 0.5 - 0.5 * grey, 0.3 * grey], 1)
        bands += 0.45 * torch.randn(n, 3, size, size)
        self.images = (bands - bands.mean((0, 2, 3), True)) / bands.std((0, 2, 3), keepdim=True)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Tensor, Tensor]:
        return self.images[i], self.masks[i]


class SmallUNet(nn.Module):
    def __init__(self, config: RoadConfig) -> None:
        super().__init__()
        w = config.width
        self.down = nn.Sequential(nn.Conv2d(3, w, 3, padding=1), nn.BatchNorm2d(w), nn.ReLU())
        self.deep = nn.Sequential(
            nn.MaxPool2d(2), nn.Conv2d(w, 2 * w, 3, padding=1), nn.BatchNorm2d(2 * w), nn.ReLU()
        )
        self.up = nn.ConvTranspose2d(2 * w, w, 2, stride=2)
        self.out = nn.Conv2d(2 * w, config.classes, 3, padding=1)
        self.activate = {"sigmoid": nn.Sigmoid, "softmax2d": nn.Softmax2d}[config.activation]()

    def forward(self, x: Tensor) -> Tensor:
        shallow = self.down(x)
        return self.activate(self.out(torch.cat([shallow, self.up(self.deep(shallow))], 1)))


def mask_loss(p: Tensor, mask: Tensor, dice_weight: float = 0.5) -> Tensor:
    overlap = (p * mask).sum((1, 2, 3))
    dice = 1 - (2 * overlap + 1) / (p.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
    return F.binary_cross_entropy(p, mask) + dice_weight * dice.mean()


def run_epoch(net, loader: DataLoader, optimizer=None) -> tuple[float, float]:
    net.train(optimizer is not None)
    total, common, union = 0.0, 0.0, 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for image, mask in loader:
            p = net(image)
            loss = mask_loss(p, mask)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() / len(loader)
            common += ((p > 0.5) & (mask > 0.5)).sum().item()
            union += ((p > 0.5) | (mask > 0.5)).sum().item()
    return total, common / union


config = RoadConfig()
train, valid = random_split(RoadTiles(480), [400, 80])
loader, val_loader = DataLoader(train, 16, shuffle=True), DataLoader(valid, 40)
net = SmallUNet(config)
optimizer = torch.optim.NAdam(net.parameters(), lr=config.lr)
for epoch in range(8):
    loss, iou = run_epoch(net, loader, optimizer)
    val_loss, val_iou = run_epoch(net, val_loader)
    print(f"epoch {epoch + 1}  loss {loss:.4f}  IoU {iou:.3f}  val. {val_loss:.4f} {val_iou:.3f}")
