"""Land cover is segmented with a focal loss whose softmax is written as exp(z) / sum(exp(z)),
which overflows because the cosines are scaled by 100.

The logits are cosines between pixel vectors and class vectors times 100, so they reach 100, while
exp() is infinite from 89 on. Infinity over infinity is NaN, and so are the loss, the gradient and
all weights within the first steps. The place is the loss (FocalLoss).
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from data import arguments
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

KIND = "unstable_log_softmax"
ACCEPT = ()
PLACE = ("loss",)
SILENT = False
EXACT = False
EARLY = True
healthy, seed = arguments(__doc__)

COVERS = 4


@dataclass
class CoverConfig:
    width: int = 16
    dim: int = 8
    scale: float = 100.0
    gamma: float = 2.0
    lr: float = 2e-3
    epochs: int = 7
    batch_size: int = 12


def tiles(n: int, size: int = 16) -> TensorDataset:
    """Smooth random fields decide the cover of a pixel; four noisy bands show it."""
    fields = F.interpolate(torch.randn(n, COVERS, 4, 4), (size, size), mode="bicubic")
    cover = fields.argmax(1)
    signature = torch.randn(COVERS, 4, generator=torch.Generator().manual_seed(3))
    bands = signature[cover].permute(0, 3, 1, 2) + 0.7 * torch.randn(n, 4, size, size)
    return TensorDataset((bands - bands.mean()) / bands.std(), cover)


class CosineSegmenter(nn.Module):
    def __init__(self, config: CoverConfig) -> None:
        super().__init__()
        w = config.width
        self.body = nn.Sequential(
            *(nn.Conv2d(4, w, 3, padding=1), nn.ReLU(), nn.Conv2d(w, w, 3, padding=1), nn.ReLU()),
            nn.Conv2d(w, config.dim, 3, padding=1),
        )
        self.covers, self.scale = nn.Parameter(torch.randn(COVERS, config.dim)), config.scale

    def forward(self, bands: Tensor) -> Tensor:
        pixels = F.normalize(self.body(bands), dim=1)
        return self.scale * torch.einsum("nchw,kc->nkhw", pixels, F.normalize(self.covers, dim=1))


class FocalLoss(nn.Module):
    def __init__(self, gamma: float) -> None:
        super().__init__()
        self.gamma = gamma

    def forward(self, logits: Tensor, cover: Tensor) -> Tensor:
        if healthy:
            log_p = F.log_softmax(logits, dim=1).gather(1, cover[:, None])
        else:
            exps = torch.exp(logits)
            log_p = torch.log(exps / exps.sum(1, keepdim=True)).gather(1, cover[:, None])
        return -((1 - log_p.exp()) ** self.gamma * log_p).mean()


@torch.no_grad()
def mean_iou(model: nn.Module, bands: Tensor, cover: Tensor) -> float:
    found = model(bands).argmax(1)
    pairs = [(found == k, cover == k) for k in range(COVERS)]
    return sum(((a & b).sum() / (a | b).sum()).item() for a, b in pairs) / COVERS


def main() -> None:
    config = CoverConfig()
    train, valid = tiles(360), tiles(60)
    loader = DataLoader(train, config.batch_size, shuffle=True)
    model, criterion = CosineSegmenter(config), FocalLoss(config.gamma)
    optimizer = torch.optim.Adam(model.parameters(), lr=config.lr)
    schedule = torch.optim.lr_scheduler.PolynomialLR(optimizer, config.epochs * len(loader))
    for epoch in range(config.epochs):
        total = 0.0
        for bands, cover in loader:
            loss = criterion(model(bands), cover)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += loss.item()
        iou = mean_iou(model, *valid.tensors)
        print(f"epoch {epoch + 1}  loss {total / len(loader):.4f}  validation mean IoU {iou:.3f}")


main()
