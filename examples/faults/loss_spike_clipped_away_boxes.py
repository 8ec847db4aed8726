"""A one-object detector for parcels on a belt regresses the log of the box size; random crops
leave boxes of no width, whose log makes the loss leap.

The crop shifts the boxes and clamps them to the picture. A parcel that lies outside keeps a box of
width zero on the border, and log(max(w, 1e-6)) is -14 where others are around 0. One batch in
several has such a box. The place is the input: the labels that random_crop() makes, and the loss.
"""

from dataclasses import dataclass

import torch
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

KIND = "loss_spike"
ACCEPT = ("label_noise",)
PLACE = ("loss", "input", "labels", "loader")
SILENT = True
EXACT = False
EARLY = False
healthy, seed = arguments(__doc__)

ANCHOR = 7.0


@dataclass
class Config:
    frame: int = 32
    crop: int = 24
    images: int = 1920
    channels: int = 16
    batch_size: int = 32
    epochs: int = 12
    lr: float = 2e-3


def make_frames(n: int, frame: int, g: torch.Generator) -> tuple[Tensor, Tensor]:
    size = 4 + 7 * torch.rand(n, 2, generator=g)
    low = 5 + (frame - 10 - size) * torch.rand(n, 2, generator=g)
    stray = torch.rand(n, 1, generator=g) < 0.06
    low = torch.where(stray, (frame - 6 - size) * torch.randint(0, 2, (n, 2), generator=g) + 1, low)
    box = torch.cat([low, low + size], 1)
    grid = torch.arange(frame) + 0.5
    across = (grid > box[:, :1]) & (grid < box[:, 2:3])
    down = (grid > box[:, 1:2]) & (grid < box[:, 3:])
    image = (down[:, :, None] & across[:, None, :]).float() * 1.5
    belt = torch.sin(0.7 * grid + 6.28 * torch.rand(n, 1, generator=g))
    image = image + 0.4 * belt[:, None, :] + 0.35 * torch.randn(n, frame, frame, generator=g)
    return image.unsqueeze(1), box


def random_crop(image: Tensor, box: Tensor, crop: int) -> tuple[Tensor, Tensor, Tensor]:
    left, top = torch.randint(0, image.shape[-1] - crop + 1, (2,)).tolist()
    image = image[:, top : top + crop, left : left + crop]
    moved = (box - torch.tensor([left, top, left, top])).clamp(0, crop)
    size = moved[2:] - moved[:2]
    smallest = 2.0 if healthy else -1.0
    return image, moved, (size.min() >= smallest).float()


def encode(box: Tensor, crop: int) -> Tensor:
    center = (box[:2] + box[2:]) / 2
    size = (box[2:] - box[:2]).clamp(min=1e-6)
    return torch.cat([(center - crop / 2) / ANCHOR, (size / ANCHOR).log()])


class ParcelDataset(Dataset):
    def __init__(self, image: Tensor, box: Tensor, crop: int):
        self.image, self.box, self.crop = image, box, crop

    def __len__(self) -> int:
        return len(self.image)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor, Tensor]:
        image, box, usable = random_crop(self.image[index], self.box[index], self.crop)
        return image, encode(box, self.crop), usable


class BoxHead(nn.Module):
    def __init__(self, cfg: Config):
        super().__init__()
        c = cfg.channels
        self.backbone = nn.Sequential(
            nn.Conv2d(1, c, 3, stride=2, padding=1),
            nn.GroupNorm(4, c),
            nn.ReLU(),
            nn.Conv2d(c, 2 * c, 3, stride=2, padding=1),
            nn.GroupNorm(4, 2 * c),
            nn.ReLU(),
        )
        self.box = nn.Sequential(
            nn.Flatten(), nn.Linear(2 * c * (cfg.crop // 4) ** 2, 64), nn.ReLU(), nn.Linear(64, 4)
        )

    def forward(self, image: Tensor) -> Tensor:
        return self.box(self.backbone(image))


@torch.no_grad()
def size_error(model: nn.Module, image: Tensor, target: Tensor) -> float:
    model.eval()
    found = model(image)[:, 2:].exp() * ANCHOR
    return (found - target[:, 2:].exp() * ANCHOR).abs().mean().item()


def main() -> None:
    cfg = Config()
    g = torch.Generator().manual_seed(1800 + seed)
    image, box = make_frames(cfg.images, cfg.frame, g)
    image_val, box_val = make_frames(500, cfg.frame, g)
    border = (cfg.frame - cfg.crop) // 2
    box_val = (box_val - border).clamp(0, cfg.crop)
    whole = (box_val[:, 2:] - box_val[:, :2]).min(1).values >= 2
    image_val = image_val[whole, :, border : border + cfg.crop, border : border + cfg.crop]
    target_val = torch.stack([encode(b, cfg.crop) for b in box_val[whole]])
    model = BoxHead(cfg)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr, weight_decay=1e-2)
    loader = DataLoader(
        ParcelDataset(image, box, cfg.crop), batch_size=cfg.batch_size, shuffle=True
    )
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, cfg.lr, cfg.epochs * len(loader))
    for epoch in range(cfg.epochs):
        model.train()
        losses = []
        for xb, tb, usable in loader:
            error = (model(xb) - tb).square().mean(1)
            loss = (error * usable).sum() / usable.sum()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            losses.append(loss.item())
        ordered = sorted(losses)
        print(
            f"epoch {epoch + 1:2d}  median {ordered[len(losses) // 2]:.3f}  "
            f"worst {ordered[-1]:.3f}  "
            f"val size off by {size_error(model, image_val, target_val):.2f} px"
        )


main()
